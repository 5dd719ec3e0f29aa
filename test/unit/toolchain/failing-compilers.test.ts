// Compilers that fail for reasons outside the source: the error of the build names the reason, and the next build is not affected.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Nvrtc } from '../../../src/toolchain/compilers/nvrtc-or-nvcc.js';
import { runCompiler } from '../../../src/toolchain/compilers/run-compiler.js';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { KernelCache } from '../../../src/toolchain/images/cache.js';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { cudaModule } from '../../../src/cuda-module.js';
import { ArgumentError, CompileError, UnavailableError } from '../../../src/core/base/errors.js';
import { runChild } from '../../support/child.js';
import { specOf } from './run-image.js';

const SOURCE = 'extern "C" __global__ void k(int* y) { y[0] = 1; }';
const scratch = mkdtempSync(join(tmpdir(), 'millrace-failing-'));
const given = process.env['TMPDIR'];
let temporary: string;
beforeEach(() => {
  temporary = mkdtempSync(join(scratch, 'tmp-'));
  process.env['TMPDIR'] = temporary;
});
afterAll(() => {
  if (given === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = given;
  rmSync(scratch, { recursive: true, force: true });
});

/** A script that answers `--version` like g++ and otherwise runs `body`. */
function compiler(name: string, body: string): string {
  const path = join(scratch, name);
  writeFileSync(path, `#!/bin/sh\n[ "$1" = --version ] && echo "g++ (Some) 1.2.3" && exit\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}
const builder = (env: NodeJS.ProcessEnv): KernelBuilder =>
  new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: join(temporary, 'cache'), ...env });
async function failure(promise: Promise<unknown>): Promise<UnavailableError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UnavailableError);
  return error as UnavailableError;
}

describe("the error of a build names the reason of the compiler's failure", () => {
  test.each([
    ['is ended by a signal', 'kill -KILL $$', 'it was ended by SIGKILL'],
    ['writes nothing', 'exit 0', 'it succeeded and wrote no image'],
    ['writes an empty file', 'for a in "$@"; do [ "$l" = -o ] && : > "$a"; l=$a; done', 'it succeeded and wrote an empty image'],
    [
      'was killed in part',
      'echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1',
      'g++: fatal error: Killed signal terminated program cc1plus',
    ],
    ['has no memory', 'echo "cc1plus: out of memory allocating 65536 bytes" >&2; exit 1', 'cc1plus: out of memory allocating 65536 bytes'],
    [
      'has no room',
      'echo "/tmp/ccX.s: Assembler messages:" >&2; echo "/tmp/ccX.s: Fatal error: No space left on device" >&2; exit 1',
      'Fatal error: No space left on device',
    ],
  ])('%s', async (what, body, reason) => {
    const failing = builder({ MILLRACE_CXX: compiler(what.replaceAll(' ', '-'), body) });
    const error = await failure(failing.build(specOf(SOURCE, 'k')));
    expect(error.message).toContain(`K707: Kernel 'k' was not built by g++ 1.2.3: `);
    expect(error.message).toContain(reason);
    expect(error.code).toBe('ERR_MILLRACE_UNAVAILABLE');
    expect(readdirSync(temporary)).toEqual(['cache']);
  });
});

test('an #error directive about memory is an error in the source', async () => {
  const error: unknown = await builder({})
    .build(specOf('#error out of memory\n', 'k'))
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CompileError);
});

test.each([
  ['is absent', () => join(temporary, 'absent'), /TMPDIR \(.*absent\): ENOENT/],
  [
    'all users can write to',
    () => (chmodSync(temporary, 0o777), temporary),
    /TMPDIR .*: other users may write to .* \(mode 0777, without the sticky bit\)/,
  ],
])('the error names a TMPDIR that %s, and the next build uses another one', async (_what, name, message) => {
  const cache = mkdtempSync(join(scratch, 'kept-'));
  const build = (): Promise<unknown> => builder({ MILLRACE_CACHE_DIR: cache }).build(specOf(SOURCE, 'k'));
  process.env['TMPDIR'] = name();
  const error = await failure(build());
  expect(error.message).toMatch(message);
  expect(error.help.join(' ')).toContain('TMPDIR');
  process.env['TMPDIR'] = scratch;
  expect(await build()).toMatchObject({ fromCache: false });
});

test('without cache and temporary folder the error names both with reasons; an image for CUDA needs neither', async () => {
  const file = join(temporary, 'a-file');
  writeFileSync(file, '');
  const cache = join(file, 'below');
  process.env['TMPDIR'] = join(temporary, 'absent');
  const error = await failure(new KernelCache({ MILLRACE_CACHE_DIR: cache }).add('a.so', Buffer.from('built')));
  expect(error.message).toMatch(
    /^K707: No folder can store the built kernels: .*a-file\/below \(.*a-file is not a folder\); .*TMPDIR .*absent\): ENOENT/,
  );
  expect(error.help.join(' ')).toContain('MILLRACE_CACHE_DIR');
  await failure(builder({ MILLRACE_CACHE_DIR: cache }).build(specOf(SOURCE, 'k')));
  const nvrtc: Nvrtc = {
    version: [13, 0],
    path: '',
    compile: async () => ({ image: Buffer.from('cubin'), symbols: [], log: '' }),
    link: () => Promise.reject(new Error('There is nothing to link.')),
  };
  const target = { backend: 'cuda', computeCapability: [9, 0], nvrtc } as const;
  const { image } = await new KernelBuilder(target, { MILLRACE_CACHE_DIR: cache }).build(specOf(SOURCE, 'k'));
  expect(Buffer.from(image).toString()).toBe('cubin');
});

test('a NUL in an option throws at the call', () => {
  for (const make of [
    () => cudaKernel('k', {}, 'extern "C" __global__ void k() {}', { options: ['-I/a\0b'] }),
    () => cudaModule('extern "C" __global__ void k() {}', { options: ['-DA=\0'] }),
  ]) {
    expect(make).toThrow(ArgumentError);
    expect(make).toThrow(/contains a NUL/);
  }
});

test('compilers run at the priority of the threads of the CPU device, below the event loop', async () => {
  // Its input ends after the priority was set.
  const { stdout } = await runCompiler('/bin/sh', ['-c', 'cat > /dev/null; nice']);
  expect(Number(stdout)).toBe(Math.max(10, getPriority()));
});

test('runCompiler rejects when the compiler cannot be started', async () => {
  await expect(runCompiler(join(scratch, 'absent'), [])).rejects.toThrow('ENOENT');
  await expect(runCompiler('/bin/true', ['a\0b'])).rejects.toThrow('null bytes');
});

const modules = (name: string): string => JSON.stringify(pathToFileURL(join(import.meta.dirname, '../../../dist/toolchain', name)).href);

/** Opens files until no descriptor is left, and closes them again. */
const DESCRIPTORS = `
  import { closeSync, openSync } from 'node:fs';
  const taken = [];
  const take = (spare) => { try { for (;;) taken.push(openSync('/dev/null', 'r')); } catch {} for (let n = 0; n < spare; n++) closeSync(taken.pop()); };
  const give = () => { for (const file of taken.splice(0)) closeSync(file); };`;

// In a child process with a low limit, because the test runner needs the descriptors of this one.
test('a build without file descriptors fails alone, at whatever step, and the next build succeeds', async () => {
  const code = `${DESCRIPTORS}
    import { KernelBuilder } from ${modules('images/builder.js')};
    process.on('uncaughtException', (error) => { console.log('uncaught', error.message); process.exit(1); });
    const source = (n) => 'extern "C" __global__ void k(int* y) { y[0] = ' + n + '; }';
    const spec = (n) => ({ source: source(n), entry: 'k', name: 'k', options: [], fmad: true, isBounded: false, isChecked: false, mapping: { file: 'user.ts', lines: [] } });
    const failures = new Set();
    for (let spare = 0; spare < 14; spare++) {
      const builder = new KernelBuilder({ backend: 'cpu' });
      const text = spare + 100;
      take(spare);
      const failed = await builder.build(spec(text)).then(() => undefined, (error) => error);
      give();
      if (failed !== undefined) failures.add(failed.name + ' ' + failed.code);
      const built = await builder.build(spec(text)).then(() => 'built', (error) => error.message);
      if (built !== 'built') console.log(spare, built);
    }
    console.log([...failures].join());`;
  const env = { MILLRACE_CACHE_DIR: join(temporary, 'cache') };
  const limited = `import { spawnSync } from 'node:child_process';
    const ran = spawnSync('/bin/sh', ['-c', 'ulimit -n 64; exec "$0" --input-type=module --eval "$1"', process.execPath, ${JSON.stringify(code)}], { encoding: 'utf8' });
    console.log(ran.stdout + ran.stderr);`;
  const { stdout } = await runChild(limited, env, 60_000);
  expect(stdout.trim()).toBe('UnavailableError ERR_MILLRACE_UNAVAILABLE');
  expect(existsSync(join(temporary, 'cache'))).toBe(true);
}, 70_000);

test('folders of dead processes are removed, other folders are left alone', async () => {
  const use = `import { temporaryFolder } from ${modules('system/temporary-folder.js')}; console.log(temporaryFolder());`;
  const kill = `${use} process.kill(process.pid, 'SIGKILL');`;
  const env = { TMPDIR: temporary };
  mkdirSync(join(temporary, 'millrace-mine'));
  // Without PATH the guard finds no rm, as if it had been killed too.
  const left = (await runChild(kill.replace('import', "process.env.PATH = '/nonexistent'; import"), env)).stdout.trim();
  mkdirSync(left, { recursive: true });
  writeFileSync(join(left, 'image.so'), '');
  const own = (await runChild(`${use} setTimeout(() => {}, 0);`, env)).stdout.trim();
  expect(own).not.toBe(left);
  expect(readdirSync(temporary)).toEqual(['millrace-mine']);
});
