// Images built ahead of time: their targets, the folder that is written, and what a builder without a compiler finds in it.
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { cudaKernel, f32, inout, kernel } from '../../../src/index.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { ArgumentError, CompileError, UnavailableError } from '../../../src/core/base/errors.js';
import type { BuildSpec } from '../../../src/core/channel/build-spec.js';
import { type Definition, listDefinitions } from '../../../src/core/kernels/definitions.js';
import { findCxx, findNvcc } from '../../../src/toolchain/compilers/toolchain.js';
import { type AheadResult, buildAhead } from '../../../src/toolchain/images/build-ahead.js';
import type { Nvrtc } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { imageTargets, targetsOfGpu, targetsOfProcessor } from '../../../src/toolchain/base/image-targets.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-ahead-'));
const folder = join(scratch, 'images');
const hasNvcc = await findNvcc().then(
  () => true,
  () => false,
);
const hasArm = await findCxx(process.env, undefined, 'arm64').then(
  () => true,
  () => false,
);

const listed = listDefinitions();
const before = listed.length;
const twice = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = 2 * x[i]!;
});
const plusOne = cudaKernel('plusOne', { x: inout(f32) }, 'extern "C" __global__ void plusOne(float* x) { x[threadIdx.x] += 1; }');
const module = cudaModule(`__device__ float factor = 3;
template <int N> __global__ void times(float* x) { x[threadIdx.x] *= N; }
namespace scaling { __global__ void scale(float* x) { x[threadIdx.x] *= factor; } }`);
const scale = module.kernel('scaling::scale', { x: inout(f32) });
const fiveTimes = module.kernel('times<5>', { x: inout(f32) });
const definitions: readonly Definition[] = listed.slice(before);

const results: AheadResult[] = [];
const list = ['cpu:x86-64-v2', 'cpu:x86-64', ...(hasNvcc ? ['sm_80', 'sm_75'] : []), ...(hasArm ? ['cpu:aarch64'] : [])].join(',');

beforeAll(async () => {
  await buildAhead({ definitions, targets: imageTargets(list), folder, done: (result) => results.push(result) });
}, 60_000);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A builder on a machine that has neither compilers nor a cache. */
const bare = { PATH: '/nonexistent', MILLRACE_NVCC: '/nonexistent', MILLRACE_CACHE: 'off' };
const cpu = (images: string = folder): KernelBuilder => new KernelBuilder({ backend: 'cpu', images }, bare);
const names = (targets: readonly { readonly name: string }[]): readonly string[] => targets.map(({ name }) => name);

describe('targets', () => {
  const all = imageTargets('cpu:x86-64-v4, cpu:x86-64-v3,cpu:x86-64,cpu:aarch64,sm_80,sm_86,sm_90,sm_120,compute_75');

  test('the newest GPU has PTX, too', () => {
    expect(names(imageTargets('sm_90,sm_100,sm_80'))).toEqual(['sm_90', 'sm_100', 'sm_80', 'compute_100']);
    expect(names(imageTargets('cpu:x86-64'))).toEqual(['cpu:x86-64']);
  });

  test.each(['', 'sm80', 'cpu', 'cpu:x86-64-v5', 'sm_80,,sm_90', 'gfx90a', 'sm_9'])(
    '%o is refused with the names that are known',
    (name) => {
      expect(() => imageTargets(name)).toThrow(ArgumentError);
      expect(() => imageTargets(name)).toThrow(/cpu:x86-64-v3.*sm_80/);
    },
  );

  test.each([
    [
      [8, 0],
      ['sm_80', 'compute_75'],
    ],
    [
      [8, 9],
      ['sm_86', 'sm_80', 'compute_75'],
    ],
    [
      [9, 0],
      ['sm_90', 'compute_75'],
    ],
    [[10, 3], ['compute_75']],
    [
      [12, 1],
      ['sm_120', 'compute_120', 'compute_75'],
    ],
    [[7, 0], []],
  ] as const)('a GPU %o runs %o', (own, expected) => {
    expect(names(targetsOfGpu(all, own))).toEqual(expected);
  });

  const V2 = 'cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3';
  const V3 = `${V2} avx avx2 bmi1 bmi2 f16c fma movbe xsave`;
  test.each([
    // Without `abm`, which virtual machines hide.
    [V3, 'x64', ['cpu:x86-64-v3', 'cpu:x86-64']],
    [`${V3} avx512f avx512bw avx512cd avx512dq avx512vl`, 'x64', ['cpu:x86-64-v4', 'cpu:x86-64-v3', 'cpu:x86-64']],
    // A level needs those below it.
    [V3.replace('popcnt', ''), 'x64', ['cpu:x86-64']],
    ['fp asimd', 'arm64', ['cpu:aarch64']],
  ] as const)('a processor with %o (%s) runs %o', (flags, arch, expected) => {
    expect(names(targetsOfProcessor(all, new Set(flags.split(' ')), arch))).toEqual(expected);
  });
});

describe('the folder', () => {
  test('has an image of each definition for each target, exported or not', () => {
    // nvcc has no names for instances of templates, and the module has one.
    const failed = results.filter(({ target, error }) => error !== undefined && target.startsWith('cpu'));
    expect(failed).toEqual([]);
    const built = results.filter(({ target, ms }) => target === 'cpu:x86-64-v2' && ms !== undefined).map((result) => result.kernel);
    expect(built.toSorted()).toEqual(['plusOne', 'scale, times<5>', 'twice']);
  });

  test.each([
    ['twice', twice.build],
    ['plusOne', plusOne.build],
    ['the module', module],
  ])('serves %s where there is no compiler', async (_name, given) => {
    const build = 'kernel' in given ? (definitions.find((one) => 'kernelNames' in one) as { closed(): BuildSpec }).closed() : given;
    const { image, fromCache, compiler } = await cpu().build(build);
    expect(Buffer.from(image).toString()).toMatch(new RegExp(`^${folder}/[0-9a-f]{32}\\.so$`));
    expect({ fromCache, compiler }).toEqual({ fromCache: true, compiler: expect.stringMatching(/g\+\+|clang/) });
  });

  test('knows the kernels of a module whose parameters were compared', async () => {
    await cpu().checkParameters(scale.build as BuildSpec);
    await cpu().checkParameters(fiveTimes.build as BuildSpec);
  });

  test('has no image of a kernel that has changed: the error names kernel, folder and command', async () => {
    const changed = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => {
      x[i] = 3 * x[i]!;
    });
    const error: unknown = await cpu()
      .build(changed.build)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CompileError);
    expect((error as Error).message).toMatch(
      /^K708: Kernel 'twice' has no image for this processor in .*images: its image there was built from another source .*, and no compiler builds it .*: npx millrace build <this and all other modules with kernels> --out \S*images --for cpu:[^,]/,
    );
    expect((error as Error).message).not.toContain('\n');
  });

  test.runIf(hasNvcc)('has cubins for GPUs and PTX for later ones', async () => {
    const builder = (computeCapability: readonly [number, number]): KernelBuilder =>
      new KernelBuilder({ backend: 'cuda', computeCapability, images: folder }, bare);
    for (const [capability, isPtx] of [
      [[8, 0], false],
      [[8, 9], false],
      [[9, 0], true],
    ] as const) {
      const { image } = await builder(capability).build(twice.build);
      const head = Buffer.from(image).toString('latin1', 0, 4);
      expect(head === '\x7fELF').toBe(!isPtx);
      if (isPtx) expect(Buffer.from(image).toString()).toMatch(/\.target sm_80[^]*\.entry /);
    }
    await expect(builder([7, 0]).build(twice.build)).rejects.toThrow(
      /K708.*this GPU.*: its images there are for .*sm_80.*, and no.* --for \S*sm_70\b/,
    );
  });

  test.runIf(hasArm)('has images for other processors', async () => {
    const { images } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as { images: { file: string; target: string }[] };
    const { file } = images.find(({ target }) => target === 'cpu:aarch64')!;
    // The machine of an ELF file: EM_AARCH64.
    expect(readFileSync(join(folder, file)).readUInt16LE(18)).toBe(183);
    // Headers with code of one processor.
    const text = `#include <curand_kernel.h>
      extern "C" __global__ void draw(float* x) {
        curandState* state = static_cast<curandState*>(malloc(sizeof(curandState)));
        curand_init(7, threadIdx.x, 0, state);
        __syncthreads();
        x[threadIdx.x] = curand_uniform(state) + clock();
        free(state);
      }`;
    const draw = cudaKernel('draw', { x: inout(f32) }, text);
    const done = vi.fn<(result: AheadResult) => void>();
    await buildAhead({ definitions: [draw], targets: imageTargets('cpu:aarch64'), folder: join(scratch, 'arm'), done });
    expect(done.mock.calls.map(([{ kernel: name, error }]) => [name, error])).toEqual([['draw', undefined]]);
  });

  test('is not written for a GPU that the compiler does not know', async () => {
    const own = join(scratch, 'refused');
    const nvrtc = { version: [12, 4], path: '', architectures: [90, 75, 120] } as unknown as Nvrtc;
    const targets = imageTargets('cpu:x86-64,sm_75,sm_80');
    const done = vi.fn<(result: AheadResult) => void>();
    await expect(buildAhead({ definitions: [twice], targets, folder: own, nvrtc, done })).rejects.toMatchObject({
      name: 'ArgumentError',
      message: "The target ('sm_80') is none that NVRTC 12.4 builds for: sm_75, sm_90, sm_120.",
    });
    expect(done).not.toHaveBeenCalled();
    expect(existsSync(own)).toBe(false);
  });

  test('cannot be made everywhere, which is an error and no wait', async () => {
    writeFileSync(join(scratch, 'file'), '');
    for (const own of ['/proc/none/images', join(scratch, 'file'), join(scratch, 'file/images')])
      await expect(buildAhead({ definitions: [twice], targets: imageTargets('cpu:x86-64'), folder: own })).rejects.toMatchObject({
        name: 'UnavailableError',
        message: expect.stringMatching(new RegExp(`^K707: The images cannot be written to ${own}: E`)),
      });
  });

  test('is replaced by the next build', async () => {
    const own = join(scratch, 'replaced');
    await buildAhead({ definitions: [twice, plusOne], targets: imageTargets('cpu:x86-64'), folder: own });
    expect(readdirSync(own)).toHaveLength(3);
    writeFileSync(join(own, 'notes.txt'), 'kept');
    await buildAhead({ definitions: [twice], targets: imageTargets('cpu:x86-64'), folder: own });
    expect(readdirSync(own).filter((name) => name.endsWith('.so'))).toHaveLength(1);
    expect(existsSync(join(own, 'notes.txt'))).toBe(true);
  });
});

describe('a folder that is not used', () => {
  const copyOf = async (): Promise<string> => {
    const own = mkdtempSync(join(scratch, 'copy-'));
    await buildAhead({ definitions: [twice], targets: imageTargets('cpu:x86-64'), folder: own });
    return own;
  };

  const message = (build: Promise<unknown>): Promise<string> => build.then(() => 'built', String);
  const imageIn = (own: string): string => join(own, readdirSync(own).find((name) => name.endsWith('.so'))!);

  test.each([
    [undefined, /has no images: its manifest\.json cannot be read: ENOENT/],
    ['{', /has no images: its manifest\.json cannot be read: .*JSON/],
    ['', /cannot be read: .*JSON/],
    ['null', /manifest\.json has not the form of such a file/],
    ['{}', /manifest\.json has not the form/],
    ['{"format":2}', /\/manifest\.json has format 2 \(this version of the package reads format 1\)/],
    ['{"format":0,"images":{}}', /has format 0/],
    ['{"format":1,"package":"a","targets":1,"images":[],"checked":[]}', /has not the form/],
    ['{"format":1,"package":"a","targets":[7],"images":[],"checked":[]}', /has not the form/],
    ['{"format":1,"package":"a","targets":[],"images":[null],"checked":[]}', /has not the form/],
    [
      '{"format":1,"package":"a","targets":[],"images":[{"file":1,"kernel":"a","target":"","compiler":""}],"checked":[]}',
      /has not the form/,
    ],
  ])('because its manifest is %o', async (text, expected) => {
    const own = mkdtempSync(join(scratch, 'manifest-'));
    if (text !== undefined) writeFileSync(join(own, 'manifest.json'), text);
    const said = await message(cpu(own).build(twice.build));
    expect(said).toMatch(expected);
    expect(said).toMatch(/^UnavailableError: [^]*Write them with this version of the package: npx millrace build/);
  });

  test('because it is absent', async () => {
    await expect(cpu(join(scratch, 'absent')).build(twice.build)).rejects.toThrow(UnavailableError);
  });

  test('because other users may write to it, or to its manifest', async () => {
    const own = await copyOf();
    chmodSync(own, 0o777);
    await expect(cpu(own).build(twice.build)).rejects.toThrow(UnavailableError);
    await expect(cpu(own).build(twice.build)).rejects.toThrow(/other users.*mode 0777/);
    chmodSync(own, 0o755);
    // The remedy names what is open: here a parent, and not the folder.
    const parent = mkdtempSync(join(scratch, 'parent-'));
    const moved = join(parent, 'images');
    cpSync(own, moved, { recursive: true });
    chmodSync(parent, 0o777);
    const error: unknown = await cpu(moved)
      .build(twice.build)
      .catch((reason: unknown) => reason);
    const [, place] = /\(chmod (?:-R )?go-w (.*?)\)/.exec((error as Error).message) ?? [];
    expect(place).toBe(parent);
    chmodSync(parent, 0o755);
    await cpu(moved).build(twice.build);
    chmodSync(join(own, 'manifest.json'), 0o666);
    const said = await message(cpu(own).build(twice.build));
    expect(said).toMatch(/^UnavailableError: .*other users may write to .*manifest\.json \(mode 0666/);
  });

  /** Each spoils an image file. */
  const SPOILT: readonly (readonly [how: string, spoil: (image: string) => void, reason: RegExp])[] = [
    ['open to others', (image) => chmodSync(image, 0o666), /: other users may write to \/.*\.so \(mode 0666; chmod go-w/],
    ['missing', (image) => rmSync(image), /: \/.*\.so is missing, and/],
    ['cut off', (image) => truncateSync(image, 1000), /: \/.*\.so is damaged or cut off: its 1000 bytes do not end with their digest, and/],
    ['empty', (image) => truncateSync(image, 0), /\.so is damaged or cut off: its 0 bytes/],
    [
      'damaged',
      (image) => {
        const bytes = readFileSync(image);
        bytes[200]! ^= 1;
        writeFileSync(image, bytes);
      },
      /\.so is damaged or cut off/,
    ],
    [
      'a link',
      (image) => {
        renameSync(image, `${image}.other`);
        symlinkSync(`${image}.other`, image);
      },
      /\.so is a symbolic link, and/,
    ],
    ['a folder', (image) => (rmSync(image), mkdirSync(image)), /\.so is not a file, and/],
    ...(process.geteuid?.() === 0
      ? [
          [
            'of another user',
            (image: string) => chownSync(image, 54_321, 54_321),
            /\.so belongs to another user \(uid 54321\), and/,
          ] as const,
        ]
      : []),
  ];

  test.each(SPOILT)('because an image is %s: the error and one warning name the file', async (_how, spoil, reason) => {
    const own = await copyOf();
    spoil(imageIn(own));
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const builder = cpu(own);
    for (let time = 0; time < 2; time++) {
      const said = await message(builder.build(twice.build));
      expect(said).toMatch(/^CompileError: K708: Kernel 'twice' has no image for this processor in .*npx millrace build/);
      expect(said).toMatch(reason);
    }
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]![0]).toMatch(
      /^An image that was built ahead of time is not used: .*\.so.*Build it again: npx millrace build\.$/,
    );
    warn.mockRestore();
  });

  test('because an image is damaged, is a warning where a compiler builds the kernel', async () => {
    const own = await copyOf();
    truncateSync(imageIn(own), 5);
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const { image } = await new KernelBuilder({ backend: 'cpu', images: own }).build(twice.build);
    expect(Buffer.from(image).toString()).not.toContain(own);
    expect(warn.mock.calls.map(([said]) => said)).toEqual([expect.stringMatching(/is not used: .*cut off/)]);
    warn.mockRestore();
  });

  test('for a device that finds races: the error is that of the compiler', async () => {
    const builder = new KernelBuilder({ backend: 'cpu', findsRaces: true, images: folder }, bare);
    expect(await message(builder.build(twice.build))).toMatch(/^UnavailableError: K701/);
  });

  test('for a kernel of a module whose parameters it has not compared', async () => {
    const other = cudaModule('template <int N> __global__ void of(float* x) { x[0] = N; }').kernel('of<3>', { x: inout(f32) });
    expect(await message(cpu().checkParameters(other.build as BuildSpec))).toMatch(
      /^CompileError: K708: The module of kernels 'of<3>' has no image/,
    );
  });

  test('because another version of the package wrote it, of which a warning tells once', async () => {
    const own = await copyOf();
    const path = join(own, 'manifest.json');
    writeFileSync(path, JSON.stringify({ ...(JSON.parse(readFileSync(path, 'utf8')) as object), package: 'other' }));
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    await expect(cpu(own).build(twice.build)).rejects.toThrow(/K708.*: they were built by another version of this package, and no/);
    await expect(cpu(own).build(plusOne.build)).rejects.toThrow(/K708/);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn.mock.calls[0]![0]).toMatch(/another version/);
    warn.mockRestore();
  });
});
