// Builds that fail for a reason outside the source, on devices whose compiler is a child process. Each test runs in a process of
// its own, with a compiler script that reads from a file how to fail.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect } from 'vitest';
import { runChild } from '../support/child.js';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { rulesOf } from '../support/rule.js';
import type { Target } from '../support/target.js';

const scratch = mkdtempSync(path.join(tmpdir(), 'millrace-again-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const CASES = [
  { spec: 'cpu', variable: 'MILLRACE_CXX', compiler: 'g++', absent: false },
  {
    spec: 'cuda:0',
    variable: 'MILLRACE_NVCC',
    compiler: `${process.execPath} ${path.resolve(import.meta.dirname, '../native/fake_cuda/nvcc.mjs')}`,
    absent: FAKE_DRIVER === undefined && FAKE_DRIVER_MISSING,
  },
] as const;

for (const { spec, variable, compiler, absent } of CASES) {
  const rule = rulesOf({ name: spec } as Target);
  const folder = mkdtempSync(path.join(scratch, 'case-'));
  const [program, mode, calls] = ['compiler', 'mode', 'calls'].map((name) => path.join(folder, name)) as [string, string, string];
  writeFileSync(
    program,
    `#!/bin/sh
[ "$1" = --version ] && exec ${compiler} --version
echo call >> ${calls}
case $(cat ${mode}) in
  killed) kill -KILL $$ ;;
  silent) exit 0 ;;
  *) exec ${compiler} "$@" ;;
esac
`,
  );
  chmodSync(program, 0o755);
  const env = {
    [variable]: program,
    MILLRACE_CACHE_DIR: path.join(folder, 'cache'),
    SPEC: spec,
    MODE: mode,
    CALLS: calls,
    PROGRAM: program,
  };
  const run = async (code: string): Promise<unknown> => {
    const { stdout, stderr } = await runChild(
      `import { readFileSync, renameSync, writeFileSync } from 'node:fs';
       import { cudaKernel, cudaModule, inout, i32, openDevice, output } from 'millrace';
       const { SPEC, MODE, CALLS, PROGRAM } = process.env;
       const device = await openDevice(SPEC);
       const mode = (name) => writeFileSync(MODE, name);
       const why = (operation) => operation.done.then(() => 'done', (error) => error.name + ' ' + error.code);
       ${code}
       await device.close();`,
      env,
      50_000,
    );
    expect(stderr).toBe('');
    return JSON.parse(stdout);
  };

  rule(
    'S419',
    `${spec}: a build that failed for a reason outside the source is repeated at the next launch`,
    async () => {
      const told = await run(`
        mode('built');
        const told = [];
        for (const reason of ['absent', 'killed', 'silent']) {
          const y = device.zeros(1, 'i32');
          const k = cudaKernel('k', { y: output(i32) }, 'extern "C" __global__ void k(int* y) { y[0] = ' + (told.length + 1) + '; } // ' + reason);
          mode(reason);
          if (reason === 'absent') renameSync(PROGRAM, PROGRAM + '.away');
          told.push(await why(device.stream.launch(k, 1, { y })));
          if (reason === 'absent') renameSync(PROGRAM + '.away', PROGRAM);
          mode('built');
          told.push(await why(device.stream.launch(k, 1, { y })), await y.item(0));
          await device.compile(k);
        }
        console.log(JSON.stringify(told));`);
      const unavailable = 'UnavailableError ERR_MILLRACE_UNAVAILABLE';
      expect(told).toEqual([unavailable, 'done', 1, unavailable, 'done', 4, unavailable, 'done', 7]);
    },
    { unless: absent },
  );

  rule(
    'S419',
    `${spec}: a source that does not compile is not built again, and a module whose compiler was killed is`,
    async () => {
      const told = await run(`
        mode('built');
        const calls = () => readFileSync(CALLS, 'utf8').length;
        const y = device.zeros(1, 'i32');
        const wrong = cudaKernel('k', { y: output(i32) }, 'extern "C" __global__ void k(int* y) { y[0] = absent; }');
        const told = [await why(device.stream.launch(wrong, 1, { y }))];
        const before = calls();
        told.push(await why(device.stream.launch(wrong, 1, { y })), calls() - before);
        const module = cudaModule('__device__ int count = 41; extern "C" __global__ void add(int* y) { y[0] = ++count; }');
        const add = module.kernel('add', { y: inout(i32) });
        const z = device.zeros(1, 'i32');
        mode('killed');
        told.push(await why(device.stream.launch(add, { grid: 1, block: 1 }, { y: z })));
        mode('built');
        const fresh = device.zeros(1, 'i32');
        told.push(await why(device.stream.launch(add, { grid: 1, block: 1 }, { y: fresh })), await fresh.item(0), await module.global(device, 'count', i32, 1).item(0));
        console.log(JSON.stringify(told));`);
      const refused = 'CompileError ERR_MILLRACE_COMPILE';
      expect(told).toEqual([refused, refused, 0, 'UnavailableError ERR_MILLRACE_UNAVAILABLE', 'done', 42, 42]);
    },
    { unless: absent },
  );
}
