// The images of operations that come with a platform package: the file, and what a builder without a compiler finds in it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { UnavailableError } from '../../../src/core/base/errors.js';
import type { Build } from '../../../src/core/channel/build-spec.js';
import { scalarOf } from '../../../src/core/elements/dtype.js';
import { output } from '../../../src/core/kernels/kernel.js';
import { cudaKernelOfText } from '../../../src/compiler/definitions/cuda-kernel.js';
import { kernelOfText } from '../../../src/compiler/definitions/kernel.js';
import { imageTargets } from '../../../src/toolchain/base/image-targets.js';
import { packageIdentity } from '../../../src/toolchain/base/package-and-cpu-identity.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { packImages, ShippedImages } from '../../../src/toolchain/images/shipped-images.js';

const scratch = mkdtempSync(join(tmpdir(), 'millrace-shipped-'));
const file = join(scratch, 'operations.images');
const target = process.arch === 'x64' ? 'cpu:x86-64' : 'cpu:aarch64';
const bare = { PATH: '/none', MILLRACE_CACHE: 'off', HOME: scratch };
const ofText = (name: string, value: string): Build =>
  kernelOfText(name, { y: output(scalarOf('f32')) }, `({ y }, { i, f32 }) => { y[i] = f32(${value}); }`, new Map(), {
    file: undefined,
    line: 0,
  }).build;
const one = ofText('ones', '1');
const cudaText = 'extern "C" __global__ void threes(float* y) { y[threadIdx.x] = 3; }';
const three: Build = cudaKernelOfText('threes', { y: output(scalarOf('f32')) }, cudaText).build;

beforeAll(async () => {
  const [processor] = imageTargets(target);
  const builder = new KernelBuilder({ backend: 'cpu', ahead: processor as never });
  const { key, content, compiler } = await builder.stored(one);
  const { key: other, content: second } = await builder.stored(three);
  const images = [
    { file: `${key}.so`, content },
    { file: `${other}.so`, content: second },
  ];
  writeFileSync(file, packImages(images, { package: await packageIdentity(), compiler, targets: [target] }));
}, 60_000);
afterAll(() => {
  rmSync(scratch, { recursive: true });
});

describe('the file of images', () => {
  test('gives back each image, also of blocks before the last', () => {
    const images = Array.from({ length: 40 }, (_, at) => ({ file: `${at}.so`, content: new Uint8Array(30_000 + at).fill(at) }));
    const path = join(scratch, 'many');
    writeFileSync(path, packImages(images, { package: 'own', compiler: 'g++', targets: [target] }));
    const read = new ShippedImages(path);
    for (const { file: name, content } of [...images, images[0]!]) expect(read.find(name)?.equals(content), name).toBe(true);
    expect([read.find('other.so'), read.isOf('own'), read.isOf('another'), read.compiler]).toEqual([undefined, true, false, 'g++']);
    expect(read.targets.map(({ name }) => name)).toEqual([target]);
  });

  test.each([
    ['absent', undefined],
    ['empty', ''],
    ['cut off', '\u{10}\0\0\0{"package":'],
  ])('is refused when it is %s', (name, text) => {
    const path = join(scratch, name);
    if (text !== undefined) writeFileSync(path, text);
    expect(() => new ShippedImages(path)).toThrow(UnavailableError);
  });
});

describe('a builder without a compiler', () => {
  const builder = (shipped = file): KernelBuilder => new KernelBuilder({ backend: 'cpu', shipped }, bare);

  test.each([
    ['TypeScript', one],
    ['CUDA C++', three],
  ])('takes the image of an operation in %s', async (_language, operation) => {
    const { image, fromCache, compiler } = await builder().build(operation);
    expect(Buffer.from(image).toString()).toMatch(/[0-9a-f]{32}\.so$/);
    expect({ fromCache, compiler }).toEqual({ fromCache: true, compiler: expect.stringMatching(/g\+\+|clang/) });
  });

  test('says for an operation without one which types it has, and how to build it', async () => {
    const error: unknown = await builder()
      .build(ofText('twos', '2'))
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnavailableError);
    expect((error as Error).message).toMatch(
      /^K701: .* The package has no image of twos for these types \(f32\) and this layout of the operands\./,
    );
    expect((error as UnavailableError).help.at(-1)).toMatch(/call twos so in a module, .*npx millrace build/);
  });

  test('warns once of a damaged file, and goes on as without it', async () => {
    const path = join(scratch, 'damaged');
    writeFileSync(path, 'text');
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    for (let n = 0; n < 2; n++) await expect(builder(path).build(one)).rejects.toThrow(/^K701/);
    expect(warn.mock.calls).toHaveLength(1);
    expect(warn.mock.calls[0]![0]).toMatch(/images of operations .* are not used: K707: .*damaged/);
    warn.mockRestore();
  });

  test('does not take the images of another version', async () => {
    const path = join(scratch, 'old');
    writeFileSync(path, packImages([], { package: 'old', compiler: 'g++', targets: [target] }));
    await expect(builder(path).build(one)).rejects.toThrow(/^K701/);
  });
});
