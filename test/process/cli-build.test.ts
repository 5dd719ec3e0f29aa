// `npx millrace build`: what it prints, what it writes, and its exit codes.
import { mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { called, type Ended, MAIN, millrace, ROOT, run, scratch } from './cli-command.js';

writeFileSync(join(scratch, 'half-part.mjs'), '\nlet = 1;');

describe('build', () => {
  const build = (name: string, ...args: readonly string[]): Promise<Ended> =>
    millrace(['build', name, ...args, ...(args.includes('--for') ? [] : ['--for', 'cpu:x86-64'])]);

  const expectRefused = ({ code, stdout, stderr }: Ended, message: RegExp): void => {
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(message)]);
    expect(stderr).not.toMatch(/^\s+at |^Node\.js v/m);
  };

  test('of what cannot be imported says what is wrong, without a stack', async () => {
    const modules: readonly (readonly [name: string, text: string | undefined, message: RegExp])[] = [
      ['absent.mjs', undefined, /^There is no file \S+absent\.mjs\b.*\.\n$/],
      ['package.jsno', undefined, /^There is no file \S+package\.jsno \(did you mean package\.json\?\)\.\n$/],
      ['none/of/it.ts', undefined, /^There is no file \S+none\/of\/it\.ts\.\n$/],
      ['.', undefined, /^\S+ is a folder, not a module\./],
      ['empty.mjs', 'export {};', /no kernel is defined/],
      ['lost.mjs', `import './lost-part.js';`, /lost\.mjs cannot be imported:\n.*Cannot find module '.*lost-part\.js' imported from/],
      ['half.mjs', 'const half = ;', /half\.mjs cannot be imported:\n.*half\.mjs:1\nconst half = ;\n +\^\n[^]*SyntaxError: /],
      ['by-half.mjs', `import './half-part.mjs';`, /by-half\.mjs cannot be imported:\n.*half-part\.mjs:2\nlet = 1;\n[^]*SyntaxError: /],
      ['names.mjs', `import { none } from 'node:fs';`, /names\.mjs cannot be imported:\n.*names\.mjs:1\n[^]*SyntaxError: .*'none'\n$/],
      [
        'enum.mjs',
        // As Node 22 throws it where it reads TypeScript.
        `const error = new SyntaxError('TypeScript enum is not supported');
         error.stack = 'file:///a.ts:1\\nenum Mode {}\\n^^^^\\n\\n' + String(error);
         throw Object.assign(error, { code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' });`,
        /enum\.mjs cannot be imported:\nfile:\/\/\/a\.ts:1\nenum Mode \{\}\n[^]*\n  If the compiler .* npm install --save-dev tsx\.\n$/,
      ],
      ['page.jsx', 'export const page = <p></p>;', /^Node v\S+ does not read JSX, as \S+page\.jsx is\.\n +Install tsx [^\n]*\n$/],
      ['text.mjs', `throw 'no table';`, /text\.mjs cannot be imported:\n'no table'\n/],
    ];
    for (const [name, text] of modules) if (text !== undefined) writeFileSync(join(scratch, name), text);
    const ended = await called(modules.map(([name]) => ['build', name, '--for', 'cpu:x86-64']));
    for (const [at, [, , message]] of modules.entries()) expectRefused(ended[at]!, message);
  });

  // These end, or disturb, their process.
  test.concurrent.each([
    [
      'later.mjs',
      `process.nextTick(() => { throw 'later'; }); await new Promise(setImmediate);`,
      /^\S+later\.mjs cannot be imported:\n'later'\n$/,
    ],
    ['rejects.mjs', `Promise.reject('no'); await new Promise(setImmediate);`, /^\S+rejects\.mjs cannot be imported:\n.*"no"/],
    ['code.mjs', 'process.exit(3);', /^\S+code\.mjs was not imported, .*: the module ends it with code 3\.\n$/],
    ['quits.mjs', 'process.exit(0);', /^\S+quits\.mjs was not imported, because the process ended first/],
    ['waits.mjs', 'await new Promise(() => {});', /^\S+waits\.mjs was not imported, because the process ended first/],
  ])('of %s says what is wrong, without a stack', async (name, text, message) => {
    writeFileSync(join(scratch, name), text);
    expectRefused(await build(name), message);
  });

  test("of a module that throws prints the module's stack alone", async () => {
    const text = `function read() {\n  throw new Error('no table', { cause: new Error('inner') });\n}\nread();`;
    writeFileSync(join(scratch, 'throws.mjs'), text);
    const { code, stderr } = await build('throws.mjs');
    const at = `    at (?:read \\()?\\S*throws\\.mjs:`;
    const stack = (line: number, column: number): string => `${at}${line}:${column}\\)?\n${at}4:1\n`;
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(`^\\S+throws\\.mjs cannot be imported:\nError: no table\n${stack(2, 9)}because of Error: inner\n${stack(2, 40)}$`),
    );
  });

  const NODE_READS_TYPESCRIPT = Boolean((process.features as { readonly typescript?: unknown }).typescript);
  const KERNELS = `import { f32, inout, kernel } from 'millrace';
    import { Mode } from './other.js';
    export const twice = kernel('twice', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 2 * x[i]!; });
    export const mode: Mode = Mode.On;`;

  test.runIf(NODE_READS_TYPESCRIPT)('of TypeScript whose types are not all that Node has to remove names tsx', async () => {
    for (const [name, text] of [
      ['enum.ts', 'export enum Mode { On }'],
      ['property.ts', 'export class Part { constructor(readonly a: number) {} }'],
      ['decorated.ts', 'const d = (_c: unknown, _x: unknown): void => {};\n@d export class Part {}'],
      ['by-enum.mjs', `import './enum.ts';`],
    ] as const) {
      writeFileSync(join(scratch, name), text);
      const { code, stderr } = await build(name);
      expect([name, code, stderr]).toEqual([
        name,
        1,
        expect.stringMatching(/cannot be imported:\n.*\.ts:\d\n[^]*\n  If .* install --save-dev tsx\.\n$/),
      ]);
      expect(stderr).not.toMatch(/^\s+at |^Node\.js v/m);
    }
  });

  test.runIf(!NODE_READS_TYPESCRIPT)('of TypeScript names tsx and the Node that need it', async () => {
    writeFileSync(join(scratch, 'typed.ts'), 'export const x: number = 1;');
    writeFileSync(join(scratch, 'by.mjs'), `import './typed.ts';`);
    for (const name of ['typed.ts', 'by.mjs'])
      expect(await build(name)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /^Node v\S+ does not read TypeScript, as \S+typed\.ts is\.\n +Install .*: npm install --save-dev tsx\.\n.* Node 22\.18 or newer\.\n$/,
        ),
      });
  });

  test.each(['module', 'commonjs'])(
    "of TypeScript takes the project's tsx where the package is of type %s, and whatever the umask writes a folder that is loaded",
    async (type) => {
      const project = join(scratch, `of-${type}`);
      mkdirSync(join(project, 'node_modules'), { recursive: true });
      for (const [name, to] of [
        ['millrace', ROOT],
        ['tsx', join(ROOT, 'node_modules/tsx')],
      ] as const)
        symlinkSync(to, join(project, 'node_modules', name));
      writeFileSync(join(project, 'package.json'), JSON.stringify({ type }));
      writeFileSync(join(project, 'kernels.ts'), KERNELS);
      writeFileSync(join(project, 'other.ts'), 'export enum Mode { On = 1 }');
      writeFileSync(join(project, 'by.mjs'), `import './kernels.ts';`);
      // From another folder, too, the project is the module's.
      const [cwd, named] = type === 'module' ? [project, 'by.mjs'] : [scratch, 'of-commonjs/kernels.ts'];
      const args = [MAIN, 'build', named, '--for', 'cpu:x86-64', '--out', 'made/images'];
      const { code, stdout, stderr } = await run('/bin/sh', ['-c', 'umask 000; exec "$0" "$@"', process.execPath, ...args], {}, cwd);
      const place = type === 'module' ? `new URL('./made/images', import.meta.url)` : '__dirname + "/../made/images"';
      expect([code, stdout.split('\n').filter((line) => !line.startsWith('Or: ')), stderr]).toEqual([
        0,
        [
          'cpu:x86-64       1 built',
          `Written to ${cwd}/made/images. Use it, in a file beside ${named}:`,
          `  openDevice('auto', { images: ${place} })`,
          '',
        ],
        '',
      ]);
      const modes = ['.', 'images', 'images/manifest.json'].map((name) => statSync(join(cwd, 'made', name)).mode & 0o777);
      expect(modes.map((mode) => mode.toString(8))).toEqual(['755', '755', '644']);
    },
  );

  test('says at once, and once, that a target cannot be built, and leaves the folder as it was', async () => {
    const nvccOf = (name: string, host: string): string => {
      const path = join(scratch, name);
      const known = "printf 'compute_90\\ncompute_80\\n'";
      const text = `case "$1" in --version) echo 'release 12.4, V12.4.1';; --list-gpu-arch) ${known};; -E) ${host};; *) exit 1;; esac`;
      writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
      return path;
    };
    const [nvcc, hostless] = [nvccOf('nvcc', 'true'), nvccOf('nvcc-alone', "echo 'gcc: No such file or directory' >&2; exit 1")];
    const env = { MILLRACE_NVRTC: '/nonexistent', MILLRACE_NVCC: nvcc, MILLRACE_CXX: '/nonexistent', MILLRACE_CACHE: 'off' };
    const text = `import { cudaModule, f32, inout } from ${JSON.stringify(join(ROOT, 'dist/index.js'))};
      const module = cudaModule('__global__ void one(float* x) { x[0] = 1; } __global__ void two(float* x) { x[0] = 2; }');
      for (const name of ['one', 'two']) module.kernel(name, { x: inout(f32) });`;
    writeFileSync(join(scratch, 'module.mjs'), text);
    const built = (targets: string, more: NodeJS.ProcessEnv = {}): Promise<Ended> =>
      millrace(['build', 'module.mjs', '--out', 'none', '--for', targets], { ...env, ...more });
    expect(await built('sm_80,sm_999')).toEqual({
      code: 2,
      stdout: '',
      stderr: "The target ('sm_999') is none that nvcc 12.4.1 builds for: sm_80, sm_90.\n",
    });
    expect(await built('cpu:x86-64')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^K701: [^\n]*MILLRACE_CXX/) });
    const old = join(scratch, 'old-g++');
    const rejects = `case "$*" in *x86-64-v4*) echo "cc1plus: error: bad value ('x86-64-v4') for '-march=' switch" >&2; exit 1;; esac`;
    writeFileSync(old, `#!/bin/sh\n${rejects}\nexec g++ "$@"\n`, { mode: 0o755 });
    expect(await built('cpu:x86-64,cpu:x86-64-v4', { MILLRACE_CXX: old, MILLRACE_CXX_X64: old })).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^The target \('cpu:x86-64-v4'\) is none that g\+\+ [\d.]+ builds for \(.*bad value.*\)\. Use a newer compiler .*\n$/,
      ),
    });
    expect(await built('sm_80', { MILLRACE_NVCC: hostless })).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^K707: nvcc 12\.4\.1 cannot build: gcc: /),
    });
    const { code, stdout, stderr } = await built('sm_80');
    expect([code, stderr]).toEqual([1, '']);
    expect(stdout).toMatch(
      /^sm_80 +0 built, 1 failed\n  one, two: .*\n[^]*compute_80 +0 built, 1 failed\n[^]*Nothing was built, .*none\.\n$/,
    );
    expect(readdirSync(scratch)).not.toContain('none');
  });
});
