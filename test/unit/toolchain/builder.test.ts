// From a BuildSpec to an image: the cache, the compilers, and the errors when there is no compiler or it rejects the source.
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { KernelBuilder, type BuildTarget } from '../../../src/toolchain/images/builder.js';
import type { Nvrtc, NvrtcProgram } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { kernelHeaders } from '../../../src/toolchain/base/kernel-headers.js';
import { runCompiler } from '../../../src/toolchain/compilers/run-compiler.js';
import { CompileError, UnavailableError } from '../../../src/core/base/errors.js';
import { f32, i32, ImageRunner, specOf } from './run-image.js';

const SAXPY = `extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}`;
const scratch = mkdtempSync(join(tmpdir(), 'millrace-builder-'));
let runner: ImageRunner;
let directory: string;

beforeAll(() => {
  // What stands in for a cache goes there too, and away with it: a test process may end without its exit event.
  process.env['TMPDIR'] = scratch;
  runner = new ImageRunner();
});
beforeEach(() => {
  directory = mkdtempSync(join(scratch, 'cache-'));
});
afterAll(() => {
  delete process.env['TMPDIR'];
  runner.close();
  rmSync(scratch, { recursive: true, force: true });
});

const cpu = (env: NodeJS.ProcessEnv = {}): KernelBuilder =>
  new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: directory, ...env });

async function rejection<E extends Error>(promise: Promise<unknown>, type: abstract new (...args: never[]) => E): Promise<E> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(type);
  return error as E;
}

function works(image: Uint8Array): void {
  const y = Float32Array.of(1, 2, 3);
  runner.run(image, 'saxpy', { grid: [1, 1, 1], block: [4, 1, 1] }, [i32(3), f32(2), Float32Array.of(1, 1, 1), y]);
  expect([...y]).toEqual([3, 4, 5]);
}

/** A script that records that it ran. */
function script(name: string, body: string): string {
  const path = join(scratch, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

test('the next builder finds a cached build', async () => {
  const first = await cpu().build(specOf(SAXPY, 'saxpy'));
  expect(first).toMatchObject({ fromCache: false, compiler: expect.stringMatching(/^(?:g\+\+|clang\+\+) \d/) });
  const second = await cpu().build(specOf(SAXPY, 'saxpy', { name: 'another name', mapping: { file: 'other.ts', lines: [9] } }));
  expect(second.fromCache).toBe(true);
  expect(Buffer.from(second.image)).toEqual(Buffer.from(first.image));
  expect(second.ms).toBeLessThan(first.ms);
  works(second.image);
});

test('the directory and its files are for this user alone; one with files of other programs is not used', async () => {
  chmodSync(directory, 0o755);
  const foreign = join(directory, 'notes.txt');
  writeFileSync(foreign, 'mine');
  works((await cpu().build(specOf(`${SAXPY} // beside it`, 'saxpy'))).image);
  expect([statSync(directory).mode & 0o777, readdirSync(directory)]).toEqual([0o755, ['notes.txt']]);
  rmSync(foreign);
  const { image } = await cpu().build(specOf(SAXPY, 'saxpy'));
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(statSync(Buffer.from(image).toString()).mode & 0o777).toBe(0o700);
  const files = readdirSync(directory);
  expect(files.filter((file) => file.endsWith('.so'))).toHaveLength(1);
  expect(files.map((file) => statSync(join(directory, file)).mode & 0o777)).toEqual(files.map(() => 0o700));
});

test('source, entry, options and fmad each change the image', async () => {
  const builder = cpu();
  const two = `${SAXPY}\nextern "C" __global__ void other() {}`;
  const specs = [
    specOf(SAXPY, 'saxpy'),
    specOf(two, 'saxpy'),
    specOf(two, 'other'),
    specOf(SAXPY, 'saxpy', { options: ['-DN=1'] }),
    specOf(SAXPY, 'saxpy', { fmad: false }),
  ];
  const images = await Promise.all(specs.map((spec) => builder.build(spec)));
  expect(new Set(images.map(({ image }) => Buffer.from(image).toString())).size).toBe(specs.length);
});

test('what a text is remembered by may be said: then the text does not count', async () => {
  const first = await cpu().build(specOf(SAXPY, 'saxpy', { identity: 'one' }));
  const renamed = await cpu().build(
    specOf(SAXPY.replaceAll('i)', 'j)').replaceAll('[i]', '[j]').replace('int i', 'int j').replace('(i ', '(j '), 'saxpy', {
      identity: 'one',
    }),
  );
  const other = await cpu().build(specOf(SAXPY, 'saxpy', { identity: 'two' }));
  expect([first, renamed, other].map(({ fromCache }) => fromCache)).toEqual([false, true, false]);
  expect(Buffer.from(renamed.image)).toEqual(Buffer.from(first.image));
});

test('a damaged file is rebuilt', async () => {
  const damages: readonly ((path: string) => void)[] = [
    (path) => truncateSync(path, statSync(path).size / 2),
    (path) => truncateSync(path, 0),
    (path) => {
      const bytes = readFileSync(path);
      bytes[1000]! ^= 1;
      writeFileSync(path, bytes);
    },
  ];
  let path = Buffer.from((await cpu().build(specOf(SAXPY, 'saxpy'))).image).toString();
  for (const damage of damages) {
    damage(path);
    const again = await cpu().build(specOf(SAXPY, 'saxpy'));
    expect(again.fromCache).toBe(false);
    works(again.image);
    path = Buffer.from(again.image).toString();
  }
});

test('an image of one compiler is not reused for another at the same path', async () => {
  const version = (number: number): string =>
    script('changing-cxx', `[ "$1" = --version ] && echo "g++ (Some) ${number}.0.0" && exit\nexec g++ "$@"`);
  for (const number of [1, 2]) {
    const cxx = version(number);
    const built = [
      await cpu({ MILLRACE_CXX: cxx }).build(specOf(SAXPY, 'saxpy')),
      await cpu({ MILLRACE_CXX: cxx }).build(specOf(SAXPY, 'saxpy')),
    ];
    expect(built.map(({ fromCache, compiler }) => [fromCache, compiler])).toEqual([
      [false, `g++ ${number}.0.0`],
      [true, `g++ ${number}.0.0`],
    ]);
  }
});

test('two concurrent builds of one source share one compilation', async () => {
  const log = join(scratch, 'calls');
  const cxx = script('counting-cxx', `[ "$1" = --version ] || echo call >> ${log}\nexec g++ "$@"`);
  const builder = cpu({ MILLRACE_CXX: cxx });
  const [a, b] = await Promise.all([builder.build(specOf(SAXPY, 'saxpy')), builder.build(specOf(SAXPY, 'saxpy'))]);
  expect(a.image).toEqual(b.image);
  expect(readFileSync(log, 'utf8')).toBe('call\n');
});

test('processes that build the same source concurrently all get a complete image', async () => {
  // Each writes the file the others want: what matters is that no one ever reads half of it.
  const worker = fileURLToPath(new URL('./add-to-cache.mjs', import.meta.url));
  const run = promisify(execFile);
  const runs = Array.from({ length: 4 }, () => run(process.execPath, [worker, directory, '60'], { timeout: 60_000 }));
  for (const { stdout } of await Promise.all(runs)) expect(stdout).toBe('whole 60 of 60\n');
  expect(readdirSync(directory)).toEqual(['same.so']);
});

test.each(['off', 'unusable'])('without a cache (%s) a kernel still runs', async (how) => {
  const file = join(directory, 'a-file');
  writeFileSync(file, '');
  const env = how === 'off' ? { MILLRACE_CACHE: 'off' } : { MILLRACE_CACHE_DIR: join(file, 'below') };
  const built = await cpu(env).build(specOf(SAXPY, 'saxpy'));
  works(built.image);
  expect(built.fromCache).toBe(false);
  expect((await cpu(env).build(specOf(SAXPY, 'saxpy'))).fromCache).toBe(how !== 'off');
  expect(readdirSync(directory)).toEqual(['a-file']);
});

test('a link to the directory is followed once', async () => {
  const target = join(directory, 'target');
  mkdirSync(target);
  const link = join(directory, 'link');
  symlinkSync(target, link);
  const { image } = await cpu({ MILLRACE_CACHE_DIR: link }).build(specOf(SAXPY, 'saxpy'));
  expect(Buffer.from(image).toString()).toMatch(new RegExp(`^${realpathSync(target)}/`));
});

test.skipIf(process.getuid?.() !== 0)('a directory of another user is not trusted (needs root, to make one)', async () => {
  const foreign = join(directory, 'foreign');
  mkdirSync(foreign);
  chownSync(foreign, 65534, 65534);
  works((await cpu({ MILLRACE_CACHE_DIR: foreign }).build(specOf(SAXPY, 'saxpy'))).image);
  expect(readdirSync(foreign)).toEqual([]);
});

test('no compiler: what was looked for and what to do', async () => {
  const error = await rejection(cpu({ PATH: '/nonexistent', CXX: '', MILLRACE_CXX: '' }).build(specOf(SAXPY, 'saxpy')), UnavailableError);
  expect(error.message).toBe(
    'K701: No C++ compiler was found to build kernels. The library looked for g++ (PATH), clang++ (PATH), c++ (PATH).\n' +
      '  Install one: apt-get install g++ (Debian, Ubuntu), dnf install gcc-c++ (Fedora), apk add g++ (Alpine).\n' +
      '  Or name one: MILLRACE_CXX=/path/to/g++.',
  );
  expect(error.help.join(' ')).toContain('apt-get install g++');
  const named = await rejection(cpu({ MILLRACE_CXX: '/nonexistent/c++ -v' }).build(specOf(SAXPY, 'saxpy')), UnavailableError);
  expect(named.message).toContain('K701: The compiler that MILLRACE_CXX names does not run: /nonexistent/c++ -v.\n');
  expect(named.help).toEqual(['Let MILLRACE_CXX name one that runs, or unset it.']);
  const cuda = new KernelBuilder(
    { backend: 'cuda', computeCapability: [9, 0] },
    { MILLRACE_CACHE_DIR: directory, MILLRACE_NVCC: '/nonexistent/nvcc' },
  );
  expect((await rejection(cuda.build(specOf(SAXPY, 'saxpy')), UnavailableError)).message).toContain('MILLRACE_NVCC');
});

test('no compiler, but the image is in the cache', async () => {
  await cpu({ MILLRACE_CXX: '' }).build(specOf(SAXPY, 'saxpy'));
  const found = await cpu({ PATH: '/nonexistent', CXX: '', MILLRACE_CXX: '' }).build(specOf(SAXPY, 'saxpy'));
  expect(found).toMatchObject({ fromCache: true, compiler: 'cache' });
  works(found.image);
});

test('a compiler that appears later is found', async () => {
  const path = join(scratch, 'later-cxx');
  const builder = cpu({ MILLRACE_CXX: path });
  await rejection(builder.build(specOf(SAXPY, 'saxpy')), UnavailableError);
  script('later-cxx', 'exec g++ "$@"');
  works((await builder.build(specOf(SAXPY, 'saxpy'))).image);
});

test("a syntax error points to the user's line", async () => {
  const source = 'extern "C" __global__ void k(float* y) {\n  int i = threadIdx.x;\n  y[i] = foo + 1;\n  y[i] = bar;\n}';
  const error = await rejection(
    cpu().build(specOf(source, 'k', { name: 'blur', mapping: { file: 'src/blur.ts', lines: [10, 11, 14, 15, 16] } })),
    CompileError,
  );
  expect(error.code).toBe('ERR_MILLRACE_COMPILE');
  expect(error.diagnostics).toMatchObject([
    { code: 'K702', file: 'src/blur.ts', line: 14, column: 10 },
    { code: 'K702', file: 'src/blur.ts', line: 15, column: 10 },
  ]);
  expect(error.message).toMatch(
    /^K702: Kernel 'blur' does not compile with g\+\+ [\d.]+: 'foo' was not declared in this scope\.\n {2}at src\/blur\.ts:14:10\n {2}14 \| {3}y\[i\] = foo \+ 1;\n {5}\| {10}\^\n {2}\(1 more error\)$/,
  );
  expect(error.log).toContain('src/blur.ts:14:10: error');
});

test('insertions of the builder move neither lines nor columns in messages', async () => {
  const source = 'extern "C" __global__ void k(void) { foo; }\nextern "C" __global__ void l(int n) {\t\tbar; }';
  const error = await rejection(cpu().build(specOf(source, 'k')), CompileError);
  const where = ['foo', 'bar'].map((name, i) => ({ line: i + 1, column: source.split('\n')[i]!.indexOf(name) + 1 }));
  expect(error.diagnostics).toMatchObject(where);
});

test("an error in the shim points to the user's call", async () => {
  const source = 'extern "C" __global__ void k(unsigned char* y) {\n\n  atomicAdd(&y[0], 1);\n}';
  const error = await rejection(cpu().build(specOf(source, 'k')), CompileError);
  expect(error.diagnostics[0]).toMatchObject({
    file: 'user.ts',
    line: 3,
    message: expect.stringContaining('atomicAdd needs a 32- or 64-bit type'),
  });
});

test('a function that is declared and nowhere defined is an error of the build, not of the launch', async () => {
  const error = await rejection(cpu().build(specOf('void g();\nextern "C" __global__ void k() { g(); }', 'k')), CompileError);
  expect(error.message).toContain('undefined reference to `g()');
});

test('a barrier behind a macro is found, and messages keep their lines', async () => {
  const source = `#define WAIT() __sync ## threads()
#if __CUDA_ARCH__ >= 900
#error not here
#endif
extern "C" __global__ void k(int* y) {
  __shared__ int s[8];
  s[threadIdx.x] = threadIdx.x;
  WAIT();
  y[threadIdx.x] = s[SIZE - 1 - threadIdx.x];
}`;
  const y = new Int32Array(8);
  const { image } = await cpu().build(specOf(source, 'k', { options: ['-DSIZE=8'] }));
  runner.run(image, 'k', { grid: [1, 1, 1], block: [8, 1, 1] }, [y]);
  expect([...y]).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
  const error = await rejection(cpu().build(specOf(source.replace('s[SIZE', 'foo[SIZE'), 'k', { options: ['-DSIZE=8'] })), CompileError);
  expect(error.diagnostics).toMatchObject([{ code: 'K702', line: 9, column: 20 }]);
  works((await cpu().build(specOf(`#define UNUSED() __syncthreads()\n${SAXPY}`, 'saxpy'))).image);
});

test('an unsupported feature is rejected at its line, also behind a macro', async () => {
  const source = '#define SPACE nv ## cuda\nextern "C" __global__ void k(int* y) {\n  y[0] = 1;\n  SPACE::f();\n}';
  const error = await rejection(cpu().build(specOf(source, 'k')), CompileError);
  expect(error.diagnostics).toMatchObject([{ code: 'K703', line: 4 }]);
});

test('in a kernel that waits, messages keep their columns', async () => {
  const source = `__device__ int first(int v) { return __any_sync(~0u, v); }
extern "C" __global__ void k(int* y) { if (first(1) && first(2)) y[0] = first(foo) + bar; }
struct S { int v; };
__device__ int second(S s) { return first(s.v) + s.w; }`;
  const error = await rejection(cpu().build(specOf(source, 'k')), CompileError);
  const lines = source.split('\n');
  expect(error.diagnostics).toMatchObject([
    { line: 2, column: lines[1]!.indexOf('foo') + 1 },
    { line: 2, column: lines[1]!.indexOf('bar') + 1 },
    { line: 4, column: lines[3]!.indexOf('w;') + 1 },
  ]);
});

test('a compiler that does not end is killed with its child processes', async () => {
  const marker = join(scratch, 'survived');
  const path = script('endless', `(sleep 2; echo > ${marker}) & wait`);
  const run = await runCompiler(path, [], { timeoutMs: 100 });
  expect(run.isTimedOut).toBe(true);
  // stdout closes only when the last of the group is gone.
  expect(readdirSync(scratch)).not.toContain('survived');
});

const H100: BuildTarget & { backend: 'cuda' } = { backend: 'cuda', computeCapability: [9, 0] };

test('NVRTC receives the source behind its head, the headers, and the options of the device', async () => {
  const calls: NvrtcProgram[] = [];
  const nvrtc: Nvrtc = {
    version: [13, 0],
    path: '/lib/libnvrtc.so',
    async compile(program) {
      calls.push(program);
      return { image: Buffer.from('cubin'), symbols: [], log: '' };
    },
    link: () => Promise.reject(new Error('There is nothing to link.')),
  };
  const builder = new KernelBuilder({ ...H100, nvrtc }, { MILLRACE_CACHE_DIR: directory });
  const built = await builder.build(specOf(SAXPY, 'saxpy', { fmad: false, options: ['--maxrregcount=32'] }));
  expect(built).toMatchObject({ compiler: 'NVRTC 13.0', fromCache: false });
  expect(Buffer.from(built.image).toString()).toBe('cubin');
  expect(calls).toEqual([
    {
      source: `#include "mr_types.h"\n#line 1 "kernel.cu"\n${SAXPY}`,
      name: 'kernel.cu',
      options: ['--gpu-architecture=sm_90', '--std=c++17', '--fmad=false', '--maxrregcount=32', '-default-device'],
      headers: kernelHeaders(),
      kernels: [],
    },
  ]);
  const again = await new KernelBuilder({ ...H100, nvrtc }, { MILLRACE_CACHE_DIR: directory }).build(
    specOf(SAXPY, 'saxpy', { fmad: false, options: ['--maxrregcount=32'] }),
  );
  expect(again.fromCache).toBe(true);
  expect(Buffer.from(again.image).toString()).toBe('cubin');
  const other = await new KernelBuilder({ ...H100, computeCapability: [8, 6], nvrtc }, { MILLRACE_CACHE_DIR: directory }).build(
    specOf(SAXPY, 'saxpy'),
  );
  expect(other.fromCache).toBe(false);
});

test("NVRTC's objections are mapped, barriers are not refused", async () => {
  const nvrtc: Nvrtc = {
    version: [12, 4],
    path: '',
    compile: async () => ({ symbols: [], log: 'kernel.cu(2): error: expected a ";"\n  y[0] = 1\n          ^\n' }),
    link: () => Promise.reject(new Error('There is nothing to link.')),
  };
  const source = 'extern "C" __global__ void k(int* y) {\n  y[0] = 1\n  __syncthreads();\n}';
  const error = await rejection(
    new KernelBuilder({ ...H100, nvrtc }, { MILLRACE_CACHE_DIR: directory }).build(specOf(source, 'k')),
    CompileError,
  );
  expect(error.diagnostics).toMatchObject([{ code: 'K702', file: 'user.ts', line: 2 }]);
  expect(error.message).toContain('does not compile with NVRTC 12.4: expected a ";".');
});

test('nvcc builds an image that the fake driver can load', async () => {
  const nvcc = `${process.execPath} ${fileURLToPath(new URL('../../native/fake_cuda/nvcc.mjs', import.meta.url))}`;
  const builder = new KernelBuilder(H100, { ...process.env, MILLRACE_CACHE_DIR: directory, MILLRACE_NVCC: nvcc });
  const two = `${SAXPY}\nextern "C" __global__ void second(int* y) { y[0] = 2; }`;
  const built = await builder.build(specOf(two, 'saxpy'));
  expect(built.compiler).toBe('nvcc 12.0.0');
  const image = join(directory, 'image.so');
  writeFileSync(image, built.image);
  works(Buffer.from(image));
  const y = new Int32Array(1);
  runner.run(image, 'second', { grid: [1, 1, 1], block: [1, 1, 1] }, [y]);
  expect(y[0]).toBe(2);
  const error = await rejection(builder.build(specOf('extern "C" __global__ void k() {\n  foo();\n}', 'k')), CompileError);
  expect(error.diagnostics).toMatchObject([{ code: 'K702', line: 2, column: 3 }]);
});
