// Hostile sources, names and options, up to the compilers: typed errors within a time limit, and never a shell.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KernelBuilder } from '../../../src/toolchain/images/builder.js';
import { runCompiler } from '../../../src/toolchain/compilers/run-compiler.js';
import { cudaKernel } from '../../../src/compiler/definitions/cuda-kernel.js';
import { kernel } from '../../../src/compiler/definitions/kernel.js';
import { CompileError } from '../../../src/core/base/errors.js';
import { f32, i32 } from '../../../src/core/elements/dtype.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { refuseOnCpu } from '../../../src/cuda-cpp/select/unsupported-features.js';
import { tokenize } from '../../../src/cuda-cpp/read/tokens.js';
import { formsOf } from '../../../src/cuda-cpp/lower/kernel-forms.js';
import { rewriteForCpu } from '../../../src/cuda-cpp/lower/rewrite.js';
import { rowEdits } from '../../../src/cuda-cpp/lower/grid-row-loops.js';
import { hasWaits } from '../../../src/cuda-cpp/lower/waiting-functions.js';
import { IS_LONG } from '../../support/long.js';
import { withText } from '../compiler/support.js';
import { f32 as single, i32 as whole, ImageRunner, specOf } from './run-image.js';

let runner: ImageRunner;
let builder: KernelBuilder;
const scratch = mkdtempSync(join(tmpdir(), 'millrace-hostile-'));
const planted = join(scratch, 'planted');
beforeAll(() => {
  runner = new ImageRunner();
  builder = new KernelBuilder({ backend: 'cpu' }, { ...process.env, MILLRACE_CACHE_DIR: join(scratch, 'cache') });
});
afterAll(() => {
  runner.close();
  rmSync(scratch, { recursive: true, force: true });
});

/** Input of which a shell would create a file. */
const COMMANDS = [
  `$(touch ${planted})`,
  `\`touch ${planted}\``,
  `; touch ${planted}`,
  `| touch ${planted}`,
  `& touch ${planted}`,
  `\n touch ${planted}`,
  `> ${planted}`,
];

test('arguments and input reach a compiler unchanged', async () => {
  const code = 'process.stdin.on("data", (text) => process.stdout.write(JSON.stringify([process.argv.slice(1), String(text)])))';
  const run = await runCompiler(process.execPath, ['-e', code, '--', ...COMMANDS], { input: COMMANDS.join('') });
  expect(JSON.parse(run.stdout)).toEqual([COMMANDS, COMMANDS.join('')]);
  expect(existsSync(planted)).toBe(false);
});

test('only the guard starts a shell, and its script is fixed', () => {
  const source = new URL('../../../src/', import.meta.url);
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const asking = files.filter((file) =>
    /\bexec(?:Sync)?\(|\bshell\s*:|child_process'/.test(readFileSync(new URL(file, source), 'utf8').replace(/\.exec\(/g, '')),
  );
  expect(asking.toSorted()).toEqual([
    // Starts Node again, without a shell.
    'cli/import-modules.ts',
    'toolchain/compilers/run-compiler.ts',
    'toolchain/system/guard-process.ts',
    // Forks Node, without a shell.
    'workers/device-process-handle.ts',
  ]);
  // What the guard is told comes by its input, line by line; nothing is put into the script.
  const guard = readFileSync(new URL('toolchain/system/guard-process.ts', source), 'utf8');
  const script = /const SCRIPT = `([^`]*)`;/.exec(guard)?.[1];
  expect(script).toContain('while read -r what which');
  expect(script).not.toContain('${');
  expect(guard.match(/\bspawn\(.*/g)).toEqual(["spawn('/bin/sh', ['-c', SCRIPT], {"]);
  for (const file of ['toolchain/compilers/run-compiler.ts', 'cli/import-modules.ts'])
    expect(readFileSync(new URL(file, source), 'utf8')).not.toMatch(/\bshell\b/);
});

test('names and options of the user start no program', async () => {
  const commands = COMMANDS.filter((one) => !one.includes('\n')).join(' ');
  await builder.build(kernel(commands, { x: inout(f32) }, withText('({ x }, { i }) => { x[i] = 2; }')).build);
  const text = 'extern "C" __global__ void k(float* y) { y[0] = 1; }';
  for (const given of [COMMANDS.flatMap((command) => [`-DNAME=${command}`, `-I${command}`]), COMMANDS]) {
    const options = given.filter((one) => !one.includes('\n'));
    await builder.build(cudaKernel('k', { y: inout(f32) }, text, { options }).build).catch((error: unknown) => {
      expect(error).toBeInstanceOf(CompileError);
    });
  }
  expect(existsSync(planted)).toBe(false);
});

test('words and macros of C++ are names like any other', async () => {
  const params = {
    int: inout(f32),
    register: f32,
    NULL: i32,
    INT_MAX: i32,
    assert: i32,
    MR_FAULT: i32,
    threadIdx: i32,
    mr_i: i32,
    linux: i32,
    __global__: i32,
  };
  const text = `({ int, register, NULL: none, INT_MAX, assert, MR_FAULT, threadIdx: here, mr_i, linux: system, __global__: all }, { i, unsigned, template }) => {
    const union = register + none + INT_MAX;
    let asm = assert + MR_FAULT + here;
    asm += mr_i + system + all;
    const größe = template(union);
    int[i] = größe + asm + unsigned;
  }`;
  const { func } = await import('../../../src/compiler/definitions/func.js');
  const made = kernel('while', params, withText(text), {
    bounds: 'unchecked',
    constants: { unsigned: 1000 },
    functions: { template: func([f32], f32, withText('(return_) => { let do_ = return_; do_ *= 2; return do_; }')) },
  });
  const { image } = await builder.build(made.build);
  const x = new Float32Array(4);
  const scalars = [single(1), ...[2, 3, 4, 5, 6, 7, 8, 9].map((value) => whole(value))];
  runner.run(image, made.build.entry, { grid: [1, 1, 1], block: [4, 1, 1] }, [x, whole(4), ...scalars, whole(4), whole(1), whole(1)]);
  expect([...x]).toEqual([1051, 1051, 1051, 1051]);
});

test('texts that end a compiler: what it says is an error of the text', async () => {
  const CUDA = 'extern "C" __global__ void k(float* y) { y[0] = 1; }';
  const texts = [
    'extern "C" __global__ void k(float* y',
    'extern "C" __global__ void k(float* y) {{{',
    `}}}}${CUDA}`,
    `#include "/dev/zero"\n${CUDA}`,
    `#include "/dev/stdin"\n${CUDA}`,
    `#line 77 "/etc/passwd"\n${CUDA.replace('y[0]', 'z[0]')}`,
    `#line 4294967296 "x"\n${CUDA.replace('y[0]', 'z[0]')}`,
    `#error ${'x'.repeat(100_000)}\n${CUDA}`,
    `${CUDA}${'('.repeat(900)}`,
    CUDA.replace('y[0]', `y[\0]`),
  ];
  for (const text of texts) {
    const start = performance.now();
    const error: unknown = await builder.build(cudaKernel('k', { y: inout(f32) }, text).build).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect({ text: text.slice(0, 60), error }).toEqual({ text: text.slice(0, 60), error: expect.any(CompileError) });
    expect((error as CompileError).message).not.toContain('root:');
    expect(performance.now() - start).toBeLessThan(20_000);
  }
}, 120_000);

const KERNEL = 'extern "C" __global__ void k(int* y)';
const KIBS = IS_LONG ? 1024 : 256;
test.each([
  ['kernels that are none', '__global__ void k(int a), ', ''],
  ['declarations without an end', 'extern __shared__ ', ''],
  ['declarations', 'extern int a[3]; ', ''],
  ['scopes', 'namespace a { ', ''],
  ['functions', '__device__ void f() { g(); } ', '__global__ void k() { f(); __syncthreads(); }'],
  ['variables', `${KERNEL} { `, 'int i = 3; '],
  ['conditions', `${KERNEL} { int i = threadIdx.x; if (`, 'i < 3 && '],
  ['barriers', `${KERNEL} { `, '__syncthreads(); '],
  ['loops', `${KERNEL} { `, 'for (int k = 0; k < 3; k++) '],
  ['brackets', '[', ''],
])(`${KIBS} KiB of %s on one line take seconds at most`, (_what, first, more) => {
  const again = more === '' || more.startsWith('__global__') ? first : more;
  const text = `${first}${again.repeat(Math.ceil((KIBS << 10) / again.length))}${more === again ? '' : more}${'}'.repeat(2)}`;
  const spec = specOf(text, 'k');
  // Of this process alone: other tests run beside.
  const before = process.cpuUsage();
  const { tokens } = tokenize(text);
  refuseOnCpu(spec, { tokens, directives: [] });
  const forms = hasWaits(tokens) ? formsOf(text, tokens, true).edits : [];
  const rows = rowEdits(text, tokens, ['k']).edits;
  rewriteForCpu(text, tokens, forms.length > 0 ? forms : rows);
  // Half a millisecond a KiB, on a machine with nothing else to do; what grows with the square takes minutes for a megabyte.
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(10 * KIBS);
});
