// More than 400 lines: all rows share one installation.
// The packages as users install them: each row is a fresh folder with the packed files, and runs the same program with a result to compare.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOfOperations, TYPES } from './operations.js';
import { rowOfPnpm } from './pnpm.js';
import { rowOfQueues } from './queues.js';
import { rowOfReadOnlySystem } from './read-only.js';
import { rowOfTemplates } from './templates.js';
import { HERE, Registry, ROOT, run, type Ran, tarball, VERSION } from './registry.js';
import { IS_LONG } from '../support/long.js';

const QUIET = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
const PROCESSOR = process.arch === 'x64' ? 'cpu:x86-64' : 'cpu:aarch64';
const RESULT = 'Float32Array(4) [ 12, 24, 36, 48 ]\n';
const IMPORTS = `import { f32, inout, input, kernel, openDevice } from 'millrace';`;
const HELLO = `
const saxpy = kernel('saxpy', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => { y[i] = a * x[i] + y[i]; });
async function hello() {
  const device = await openDevice('cpu');
  const x = device.from(new Float32Array([1, 2, 3, 4]));
  const y = device.from(new Float32Array([10, 20, 30, 40]));
  device.stream.launch(saxpy, y.length, { a: 2, x, y });
  console.log(await y.read());
  await device.close();
}
hello();
`;
const HELLO_AND_SUM = `${HELLO.replace('hello();', 'hello()')}.then(() => openDevice('cpu')).then(async (device) => {
  console.log(await sum(device.from([1, 2, 3, 4])).item());
  await device.close();
});`;
const TESTING = `import { createTestClock, createTestDevice } from 'millrace/testing';
const clock = createTestClock();
const device = createTestDevice({ clock });
const x = device.full(3, 7);
await clock.run(async () => console.log(await x.read()));`;
const SAYS = `import { openDevice } from 'millrace';
const error = await openDevice().catch((caught) => caught);
console.log(error.name, error.message);`;

/** For bundles: one copy of rxjs serves program and library. */
const BUNDLED = `import { Observable } from 'rxjs';
${IMPORTS}${HELLO.replace('await y.read()', 'await y.read(), device.stream.operations$ instanceof Observable')}`;
const RESULT_BUNDLED = RESULT.replace('\n', ' true\n');
/** What docs/bundlers.md names for a program that a bundler put the package into. */
const SHIPPED = ['millrace', HERE];

let folder: string;
let registry: Registry;
/** A project that npm has installed: rows copy it. */
let installed: string;

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'millrace-package-')));
  const packed = await run(
    process.execPath,
    ['scripts/package.mjs', 'main', 'create', HERE.replace('@millrace/', ''), `--operations=${TYPES.join()}`],
    ROOT,
    {},
    280_000,
  );
  expect(packed).toMatchObject({ code: 0, stderr: '' });
  registry = await Registry.open();
  installed = registry.project(path.join(folder, 'installed'));
  expect(await run('npm', ['install', ...QUIET], installed)).toMatchObject({ code: 0, stderr: '' });
}, 300_000);
afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
}, 120_000);

/** The installed project with other programs. `isOwn`: the row changes its packages. */
function copy(name: string, files: Readonly<Record<string, string>>, isOwn = false): string {
  const made = path.join(folder, name);
  // A second try of a test begins anew.
  rmSync(made, { recursive: true, force: true });
  mkdirSync(made);
  for (const file of ['package.json', '.npmrc', 'package-lock.json']) cpSync(path.join(installed, file), path.join(made, file));
  const [from, to] = [path.join(installed, 'node_modules'), path.join(made, 'node_modules')];
  if (isOwn) cpSync(from, to, { recursive: true });
  else symlinkSync(from, to);
  for (const [file, text] of Object.entries(files)) writeFileSync(path.join(made, file), text);
  return made;
}

/** The rows share the images of the kernel, whose name is the same in each. */
function node(args: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}, program = process.execPath): Promise<Ran> {
  return run(program, args, cwd, { MILLRACE_CACHE_DIR: path.join(folder, 'cache'), ...env });
}

describe('the packed files', () => {
  const list = async (name: string): Promise<readonly string[]> => {
    const { stdout } = await run('tar', ['tzf', tarball(name)], folder);
    return stdout
      .trim()
      .split('\n')
      .map((file) => file.replace('package/', ''));
  };

  test('the package has bundles, few declarations and the headers of kernels, and nothing of the build', async () => {
    const files = await list('millrace');
    expect(statSync(tarball('millrace')).size).toBeLessThan(2_000_000);
    expect(files.length).toBeLessThan(220);
    const others = files.filter((file) => !/^(?:native\/(?:cpu\/shim|kernel_headers)|dist\/cli)\//.test(file));
    const entries = ['', 'collectives/', 'ops/', 'queue/', 'recording/', 'testing/'];
    const bundles = ['shared.cjs', ...entries.map((entry) => `${entry}library.cjs`)];
    const named = entries.flatMap((entry) => [`${entry}index.js`, `${entry}index.cjs`]);
    const devices = ['builds', 'host', 'process', 'timers', 'worker'].map((name) => `workers/device-${name}.cjs`);
    const declarations = ['api', ...entries.map((entry) => `${entry}index`)].flatMap((name) => [`${name}.d.ts`, `${name}.d.cts`]);
    const dist = [...bundles, 'workers/cpu-task.cjs', ...devices, 'workers/machine-report.cjs']
      .flatMap((name) => [name, `${name}.map`])
      .concat(named, declarations, 'acorn.cjs', 'recording/page.html', 'package-identity', 'THIRD-PARTY-LICENSES');
    expect(new Set(others.map((file) => file.replace(/-[\w-]{8}\.cjs/, '.cjs')))).toEqual(
      new Set(['CHANGELOG.md', 'LICENSE', 'README.md', 'native/headers.txt', 'package.json', ...dist.map((name) => `dist/${name}`)]),
    );
    const manifest = createRequire(path.join(installed, 'x.js'))('millrace/package.json') as Record<string, unknown>;
    expect(manifest).toMatchObject({ optionalDependencies: { '@millrace/linux-arm64-gnu': VERSION, '@millrace/linux-x64-gnu': VERSION } });
    for (const field of ['private', 'scripts', 'devDependencies', 'os', 'cpu', 'gypfile']) expect(manifest).not.toHaveProperty(field);
  });

  test('links of the README lead to the repository', async () => {
    const { stdout } = await run('tar', ['xzOf', tarball('millrace'), 'package/README.md'], folder);
    expect(stdout).toContain(`](https://github.com/millrace/millrace/blob/v${VERSION}/docs/semantics.md)`);
    expect([...stdout.matchAll(/\]\((?!https:|#)[^)]*\)/g)]).toEqual([]);
  });

  test.for(['x64', 'arm64'])(
    "the addon's package for %s has the addon, which loads with glibc 2.28 and needs no libstdc++",
    async (cpu, context) => {
      const packed = `@millrace/linux-${cpu}-gnu`;
      const isHere = cpu === process.arch;
      context.skip(!isHere && !existsSync(tarball(packed)), `npm run package -- ${packed.replace('@millrace/', '')} has not made it`);
      expect(new Set(await list(packed))).toEqual(new Set(['LICENSE', 'README.md', 'millrace.node', 'operations.images', 'package.json']));
      expect(statSync(tarball(packed)).size).toBeLessThan(2_000_000);
      expect(await run('tar', ['xzf', tarball(packed), '--transform', `s/^package/${cpu}/`], folder)).toMatchObject({ code: 0 });
      const objdump = isHere ? 'objdump' : `${{ x64: 'x86_64', arm64: 'aarch64' }[cpu]}-linux-gnu-objdump`;
      const { stdout } = await run(objdump, ['-pT', path.join(folder, cpu, 'millrace.node')], folder);
      const needed = [...stdout.matchAll(/^ *NEEDED +(\S+)$/gm)].map(([, name]) => name);
      expect(needed.filter((name) => !/^(?:lib(?:c|m|dl|pthread|gcc_s)\.so\.\d|ld-linux-.*)$/.test(name ?? ''))).toEqual([]);
      const newer = [...stdout.matchAll(/\((GLIBC|GLIBCXX|CXXABI)_(\d+)\.(\d+)[\d.]*\) *(\S+)$/gm)];
      expect(newer.length).toBeGreaterThan(50);
      // A symbol in this list needs its first version: add it to native/portable/portable.cmake.
      expect(newer.filter(([, library, , minor]) => library !== 'GLIBC' || Number(minor) > 28).map(([text]) => text)).toEqual([]);
      const exported = [...stdout.matchAll(/^[0-9a-f]+ g +D\w? +\.text.* (\S+)$/gm)].map(([, name]) => name);
      expect(new Set(exported)).toEqual(new Set(['napi_register_module_v1', 'node_api_module_get_api_version_v1']));
    },
  );
});

describe('the program runs', () => {
  test('as an ES module, by require, through tsx and in a worker', async () => {
    const project = copy('ways', {
      'hello.mjs': `${IMPORTS} import { sum } from 'millrace/ops'; ${HELLO_AND_SUM}`,
      'hello.cjs': `const { f32, inout, input, kernel, openDevice } = require('millrace'); const { sum } = require('millrace/ops'); ${HELLO_AND_SUM}`,
      'hello.ts': `${IMPORTS}${HELLO.replace('x[i] + y[i]', 'x[i]! + y[i]!').replace('async function hello()', 'async function hello(): Promise<void>')}`,
      'worker.mjs': `import { Worker } from 'node:worker_threads'; new Worker(new URL('./hello.mjs', import.meta.url));`,
    });
    const tsx = path.join(ROOT, 'node_modules/tsx/dist/loader.mjs');
    for (const args of [['hello.mjs'], ['hello.cjs'], ['--import', tsx, 'hello.ts'], ['worker.mjs']]) {
      const { code, stdout, stderr } = await node(args, project);
      const result = args.includes('hello.ts') ? RESULT : `${RESULT}10\n`;
      expect([args, code, stdout, stderr.replaceAll(/\(node:\d+\) ExperimentalWarning.*\n.*\n/g, '')]).toEqual([args, 0, result, '']);
    }
    expect(readdirSync(path.join(project, 'node_modules/@millrace'))).toEqual([HERE.replace('@millrace/', '')]);
  });

  rowOfQueues(copy, node);
  rowOfTemplates(() => ({ folder, installed }), PROCESSOR);
  test('with CUDA C++ that includes headers, of which the package has only a table', async () => {
    const project = copy('headers', {
      'blocks.mjs': `import { cudaKernel, i32, inout, openDevice } from 'millrace';
        const sums = cudaKernel('sums', { x: inout(i32) }, \`
          #include <algorithm>
          #include <cub/cub.cuh>
          #include <cooperative_groups/reduce.h>
          extern "C" __global__ void sums(int* x) {
            using Reduce = cub::BlockReduce<int, 64>;
            __shared__ typename Reduce::TempStorage room;
            const int all = Reduce(room).Sum(x[threadIdx.x]);
            if (threadIdx.x == 0) x[0] = all;
          }\`);
        const device = await openDevice('cpu');
        const x = device.full(64, 2, i32);
        const asks = cudaKernel('asks', { x: inout(i32) }, \`
          extern "C" __global__ void asks(int* x) {
          #if __has_include(<vector>) && __has_include(<cub/cub.cuh>)
            x[threadIdx.x] = 3;
          #endif
          }\`);
        device.stream.launch(asks, { grid: 1, block: 64 }, { x });
        device.stream.launch(sums, { grid: 1, block: 64 }, { x });
        console.log(await x.item(0));
        const wrong = cudaKernel('wrong', { x: inout(i32) }, '#include <cub/cub.cuh>\\nextern "C" __global__ void wrong(int* x) { nothing(x); }');
        const error = await device.stream.launch(wrong, { grid: 1, block: 1 }, { x }).done.catch((caught) => caught);
        console.log(error.code, error.diagnostics.map(({ line, message }) => [line, message]));
        await device.close();`,
    });
    const temporary = path.join(project, 'temporary');
    mkdirSync(temporary);
    const { code, stdout, stderr } = await node(['blocks.mjs'], project, { TMPDIR: temporary });
    expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/^192\nERR_MILLRACE_COMPILE \[ \[ 24, .*nothing.* \] \]\n$/), '']);
    expect(readdirSync(temporary)).toEqual([]);
  });

  test('with kernels that npx millrace has built from TypeScript, where there is no compiler', async () => {
    const saxpy = HELLO.slice(0, HELLO.indexOf('async function')).replace('x[i] + y[i]', 'x[i]! + y[i]!');
    const project = copy(
      'ahead',
      { 'kernels.ts': `${IMPORTS} import { Mode } from './mode.js'; ${saxpy} export const mode = Mode.On;` },
      true,
    );
    writeFileSync(path.join(project, 'mode.ts'), 'export enum Mode { On = 1 }');
    const tools = path.join(folder, 'old-tsx');
    if (IS_LONG) expect(await run('npm', ['install', ...QUIET, '--prefix', tools, 'tsx@4.19.2'], folder)).toMatchObject({ code: 0 });
    const tsx = path.join(project, 'node_modules/tsx');
    for (const from of [ROOT, ...(IS_LONG ? [tools] : [])]) {
      rmSync(tsx, { force: true });
      symlinkSync(path.join(from, 'node_modules/tsx'), tsx);
      // The templates are of type module, and run without a compiler as well.
      for (const type of [...(IS_LONG ? ['module'] : []), 'commonjs']) {
        writeFileSync(path.join(project, 'package.json'), JSON.stringify({ type }));
        rmSync(path.join(project, 'images'), { recursive: true, force: true });
        const { code, stdout, stderr } = await run('npx', ['millrace', 'build', 'kernels.ts', '--for', PROCESSOR], project);
        const [opening = ''] = /openDevice\(.*\)/.exec(stdout) ?? [];
        const isModule = type === 'module';
        const place = isModule ? 'import.meta.url' : '__dirname';
        expect([from, type, code, stderr, opening]).toEqual([from, type, 0, '', expect.stringContaining(place)]);
        const program = HELLO.replace("openDevice('cpu')", opening);
        const imports = isModule ? IMPORTS : IMPORTS.replace('import', 'const').replace(/ from (.*);/, ' = require($1);');
        writeFileSync(path.join(project, 'hello.js'), imports + program);
        const bare = { PATH: '/none', MILLRACE_CACHE: 'off' };
        expect(await node(['hello.js'], project, bare)).toEqual({ code: 0, stdout: RESULT, stderr: '' });
      }
    }
  });

  rowsOfOperations(copy, node);
  rowOfReadOnlySystem(copy, PROCESSOR);

  // The code is then in the program; workers, headers and addon stay in the installed package.
  describe('bundled, and beside a bundle', () => {
    const FORMATS = [
      ['esm', 'mjs'],
      ['cjs', 'cjs'],
    ] as const;
    const PACKAGES = ['millrace', 'rxjs'];
    type Bundle = readonly [program: string, format: 'esm' | 'cjs', isIn: boolean];
    const BUNDLES: readonly Bundle[] = FORMATS.flatMap(([format, end]) =>
      [true, false].map((isIn) => [`${isIn ? 'in' : 'by'}.${end}`, format, isIn] as const),
    );
    const bin = (tools: string, name: string): string => path.join(tools, 'node_modules/.bin', name);
    const ofRoot = (name: string): string => bin(ROOT, name);

    async function each(
      name: string,
      commands: (bundle: Bundle) => readonly string[],
      files: Readonly<Record<string, string>> = {},
    ): Promise<void> {
      const project = copy(name, { 'hello.mjs': BUNDLED, ...files });
      // A program that requires the package, which is not bundled, is the one of another row.
      for (const bundle of BUNDLES.filter(([, format, isIn]) => IS_LONG || isIn || format === 'esm')) {
        const [file, , isIn] = bundle;
        const [command = '', ...args] = commands(bundle);
        const { code, stdout, stderr } = await run(command, args, project);
        expect([bundle, code, code === 0 ? '' : stdout + stderr]).toEqual([bundle, 0, '']);
        expect([bundle, await runShipped(path.join(project, file), isIn)]).toEqual([
          bundle,
          { code: 0, stdout: RESULT_BUNDLED, stderr: '' },
        ]);
      }
    }

    /** Runs a bundle where only the packages are that it needs. */
    function runShipped(bundle: string, isIn: boolean, end = path.extname(bundle)): Promise<Ran> {
      const place = shipped(isIn ? 'in' : 'by', isIn ? SHIPPED : [...SHIPPED, 'rxjs']);
      cpSync(bundle, path.join(place, `program${end}`));
      return node([`program${end}`], place);
    }

    /** A folder with these packages alone. */
    function shipped(name: string, packages: readonly string[]): string {
      const place = path.join(folder, 'shipped', name);
      for (const one of packages) {
        const to = path.join(place, 'node_modules', one);
        if (!existsSync(to)) cpSync(path.join(installed, 'node_modules', one), to, { recursive: true });
      }
      mkdirSync(place, { recursive: true });
      return place;
    }

    test('by esbuild', () =>
      each('esbuild', ([file, format, isIn]) => [
        ofRoot('esbuild'),
        'hello.mjs',
        '--bundle',
        '--platform=node',
        `--format=${format}`,
        `--outfile=${file}`,
        '--log-level=error',
        ...(isIn ? [] : ['--packages=external']),
      ]));

    test.runIf(IS_LONG)('by rolldown, which Vite bundles with, too', () =>
      each('rolldown', ([file, format, isIn]) => [
        ofRoot('rolldown'),
        'hello.mjs',
        '--platform',
        'node',
        '--format',
        format,
        '--file',
        file,
        ...(isIn ? [] : PACKAGES.flatMap((name) => ['--external', name])),
      ]),
    );

    test('by Vite for servers', async () => {
      const vite = (isIn: boolean): string =>
        `export default { build: { ssr: 'hello.mjs', outDir: '${isIn}' }, ssr: { noExternal: ${isIn ? 'true' : '[]'} }, logLevel: 'error' };`;
      const project = copy('vite', { 'hello.mjs': BUNDLED, 'in.mjs': vite(true), 'by.mjs': vite(false) });
      for (const config of ['in', ...(IS_LONG ? ['by'] : [])]) {
        const built = await run(ofRoot('vite'), ['build', '--config', `${config}.mjs`], project);
        expect(built.code, built.stderr).toBe(0);
        const bundle = path.join(project, `${config === 'in'}/hello.js`);
        expect(await runShipped(bundle, config === 'in', '.mjs')).toEqual({ code: 0, stdout: RESULT_BUNDLED, stderr: '' });
      }
    });

    test('which names what it needs and does not have; test devices need nothing', async () => {
      const project = copy('needs', {
        'task.mjs': 'export default (x) => x + 1;',
        'needs.mjs': `import { createCpuPool, diagnostics, f32, inout, kernel, openDevice } from 'millrace';
          import { createTestClock, createTestDevice } from 'millrace/testing';
          import { lastValueFrom, map, timer } from 'rxjs';
          kernel('one', { x: inout(f32) }, ({ x }, { i }) => { x[i] = 1; });
          const says = (error) => error.name + ' ' + error.message;
          const clock = createTestClock();
          const device = createTestDevice({ clock });
          const ones = device.ones(2);
          clock.run(async () => [...(await ones.read()), await lastValueFrom(timer(3_600_000).pipe(map(() => 'an hour')))].join()).then(async (tested) => {
            const opened = await openDevice('cpu').then(async (one) => (await one.close(), 'open'), says);
            const pool = createCpuPool(process.argv[2]);
            const pooled = await pool.run(41).catch(says);
            await pool.close();
            const [found] = (await diagnostics()).findings;
            console.log(JSON.stringify({ tested, opened, pooled, found }));
          });`,
      });
      const options = ['--bundle', '--platform=node', '--format=esm', '--outfile=needed.mjs', '--log-level=error', '--keep-names'];
      expect(await run(ofRoot('esbuild'), ['needs.mjs', ...options], project)).toMatchObject({ code: 0, stderr: '' });
      // Not bundled, too.
      const alone = shipped('alone', ['millrace']);
      writeFileSync(path.join(alone, 'alone.mjs'), `import('millrace/testing').catch(({ name, message }) => console.log(name, message));`);
      expect((await node(['alone.mjs'], alone)).stdout).toMatch(
        /^UnavailableError Test clocks need the package rxjs, .*\n +Install it.*: npm install rxjs@7\n$/,
      );
      const says = async (packages: readonly string[]): Promise<unknown> => {
        const place = shipped(`needs-${packages.length}`, packages);
        cpSync(path.join(project, 'needed.mjs'), path.join(place, 'needed.mjs'));
        const { stdout, stderr } = await node(['needed.mjs', path.join(project, 'task.mjs')], place);
        return stderr === '' ? JSON.parse(stdout) : stderr;
      };
      const tested = '1,1,an hour';
      const ofPackage = new RegExp(
        `^UnavailableError The package millrace, .* is not found from ${folder}/shipped/.*\n +Install it there: npm install millrace@${VERSION}\n`,
      );
      const packageless = { tested, opened: expect.stringMatching(ofPackage), pooled: expect.stringMatching(ofPackage) };
      const found = { name: 'millrace', status: 'error', remedy: expect.stringContaining(`npm install millrace@${VERSION}`) };
      expect(await says([])).toMatchObject({ ...packageless, found });
      expect(await says([HERE])).toMatchObject({ ...packageless, found });
      const pooled =
        'UnavailableError CPU pools need the package piscina, which cannot be loaded.\n  Install it beside millrace: npm install piscina@5';
      expect(await says(SHIPPED)).toMatchObject({ tested, opened: 'open', pooled, found: { name: 'system', status: 'ok' } });
      const whole = [...SHIPPED, 'piscina'];
      expect(await says(whole)).toMatchObject({ tested, opened: 'open', pooled: 42 });
      const manifest = path.join(shipped(`needs-${whole.length}`, whole), 'node_modules/millrace/package.json');
      writeFileSync(manifest, JSON.stringify({ ...(JSON.parse(readFileSync(manifest, 'utf8')) as object), version: '9.0.0' }));
      const other = expect.stringMatching(
        /is millrace 9\.0\.0, and the bundled program has the code of [\d.]+\.\n[^]*bundle the program again/,
      );
      expect(await says(whole)).toMatchObject({ tested, opened: other, pooled: other, found: { name: 'millrace', status: 'error' } });
    });

    test.runIf(IS_LONG)(
      'by rollup and webpack',
      async () => {
        const tools = path.join(folder, 'bundlers');
        const names = ['rollup@4', '@rollup/plugin-node-resolve@16', '@rollup/plugin-commonjs@28', 'webpack@5', 'webpack-cli@6'];
        expect(await run('npm', ['install', ...QUIET, '--prefix', tools, ...names], folder)).toMatchObject({ code: 0 });
        const plugin = (name: string, opts = '{}'): readonly string[] => [
          '-p',
          `${path.join(tools, 'node_modules/@rollup', `plugin-${name}/dist/cjs/index.js`)}=${opts}`,
        ];
        await each('rollup', ([file, format, isIn]) => [
          bin(tools, 'rollup'),
          'hello.mjs',
          '--format',
          format,
          '--inlineDynamicImports',
          '--file',
          file,
          ...(isIn ? [...plugin('node-resolve', '{exportConditions:["node"]}'), ...plugin('commonjs')] : ['--external', PACKAGES.join()]),
        ]);
        await each(
          'webpack',
          ([file, format, isIn]) => [
            bin(tools, 'webpack'),
            '--config',
            'webpack.cjs',
            '--env',
            `file=${file}`,
            ...(format === 'esm' ? ['--env', 'esm'] : []),
            ...(isIn ? ['--env', 'in'] : []),
          ],
          {
            'webpack.cjs': `module.exports = ({ file, esm, in: isIn }) => ({
              mode: 'production', target: 'node20', entry: './hello.mjs', experiments: { outputModule: !!esm },
              output: { path: __dirname, filename: file, module: !!esm, chunkFormat: esm ? 'module' : 'commonjs', library: { type: esm ? 'module' : 'commonjs2' } },
              externals: isIn ? [] : { millrace: (esm ? 'module' : 'commonjs') + ' millrace', rxjs: (esm ? 'module' : 'commonjs') + ' rxjs' },
            });`,
          },
        );
      },
      300_000,
    );
  });

  test.runIf(IS_LONG)(
    'in Bun, in Deno and under Jest',
    async () => {
      const tools = path.join(folder, 'runtimes');
      expect(await run('npm', ['install', ...QUIET, '--prefix', tools, 'bun@1', 'deno@2', 'jest@30'], folder)).toMatchObject({ code: 0 });
      const tool = (name: string): string => path.join(tools, 'node_modules/.bin', name);
      const project = copy('in-runtimes', {
        'hello.mjs': IMPORTS + HELLO,
        'hello.test.cjs': `const { f32, inout, input, kernel, openDevice } = require('millrace');
          ${HELLO.replace('hello();', '').replace('console.log(await y.read())', 'expect([...(await y.read())]).toEqual([12, 24, 36, 48])')}
          test('hello', hello);`,
      });
      expect(await node(['hello.mjs'], project, {}, tool('bun'))).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/12, *24, *36, *48/),
      });
      expect(await node(['run', '-A', 'hello.mjs'], project, {}, tool('deno'))).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('12, 24, 36, 48'),
      });
      const jest = await node(['--testMatch', '**/*.test.cjs', '--rootDir', project], project, {}, tool('jest'));
      expect([jest.code, jest.stderr]).toEqual([0, expect.stringContaining('1 passed')]);
    },
    300_000,
  );

  test.runIf(Number(process.versions.node.split('.')[0]) >= 24)(
    'with the permission model and its grants, which the error without them names',
    async () => {
      const project = copy('permissions', { 'hello.mjs': IMPORTS + HELLO, 'says.mjs': SAYS });
      const { stdout } = await node(['--permission', '--allow-fs-read=*', 'says.mjs'], project);
      const [grants = ''] = /--allow-addons[^.]*/.exec(stdout.replace(', and for compilers', '')) ?? [];
      expect(grants.split(' ').length).toBeGreaterThan(4);
      expect(await node(['--permission', ...grants.trim().split(' '), 'hello.mjs'], project)).toMatchObject({ code: 0, stdout: RESULT });
    },
  );

  test('from an archive of Electron, beside which the package is unpacked', async () => {
    const project = copy('electron', {});
    const [archive, unpacked] = ['app.asar', 'app.asar.unpacked'].map((name) => path.join(project, 'resources', name, 'node_modules'));
    cpSync(path.join(installed, 'node_modules'), archive!, { recursive: true });
    for (const name of SHIPPED) cpSync(path.join(installed, 'node_modules', name), path.join(unpacked!, name), { recursive: true });
    // What compilers and loaders would not find in an archive.
    for (const name of ['@millrace', 'millrace/native', 'millrace/dist/workers']) rmSync(path.join(archive!, name), { recursive: true });
    writeFileSync(path.join(archive!, '../hello.mjs'), IMPORTS + HELLO);
    expect(await node(['resources/app.asar/hello.mjs'], project)).toEqual({ code: 0, stdout: RESULT, stderr: '' });
  });

  test('and is compiled by TypeScript with the joined declarations', async () => {
    const project = copy(
      'types',
      {
        'hello.ts': `${IMPORTS}${HELLO.replace('x[i] + y[i]', 'x[i]! + y[i]!')}
        import type { Device } from 'millrace'; import { createTestClock, createTestDevice } from 'millrace/testing';
        export const device: Device = createTestDevice({ clock: createTestClock() }); export const lost: Promise<unknown> = device.lost;
        // @ts-expect-error: no such member, so the types are not any
        device.nothing;`,
      },
      true,
    );
    symlinkSync(path.join(ROOT, 'node_modules/@types'), path.join(project, 'node_modules/@types'));
    writeFileSync(
      path.join(project, 'by-require.cts'),
      `import millrace = require('millrace'); import testing = require('millrace/testing');
        export const device: millrace.Device = testing.createTestDevice({ clock: testing.createTestClock() });`,
    );
    const compilers = [ROOT];
    if (IS_LONG) {
      compilers.push(path.join(folder, 'typescript'));
      expect(await run('npm', ['install', ...QUIET, '--prefix', compilers[1]!, 'typescript@5.9'], folder)).toMatchObject({ code: 0 });
    }
    // No `types`, and the declarations are checked themselves.
    const options = { strict: true, noEmit: true, skipLibCheck: false, target: 'es2022', types: [] };
    for (const from of compilers)
      for (const [module, moduleResolution] of [
        ...(IS_LONG ? ([['node16', 'node16']] as const) : []),
        ['nodenext', 'nodenext'],
        ...(IS_LONG ? ([['esnext', 'bundler']] as const) : []),
      ] as const) {
        const files = ['hello.ts', ...(module === 'esnext' ? [] : ['by-require.cts'])];
        const config = { compilerOptions: { ...options, module, moduleResolution }, files };
        writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify(config));
        const { code, stdout } = await run(process.execPath, [path.join(from, 'node_modules/typescript/bin/tsc')], project);
        expect([from, module, code, stdout]).toEqual([from, module, 0, '']);
      }
  }, 120_000);

  rowOfPnpm(
    QUIET,
    () => folder,
    (name) => registry.project(path.join(folder, name), { 'hello.mjs': IMPORTS + HELLO }),
    node,
    RESULT,
  );

  // Each is a download of 40 MB.
  test.runIf(IS_LONG)(
    'with Node 20, 22, 24 and 26',
    async () => {
      const project = copy('releases', { 'hello.mjs': IMPORTS + HELLO, 'enum.ts': 'export enum Mode { On }' });
      for (const release of [20, 22, 24, 26]) {
        const place = path.join(folder, `node-${release}`);
        const name = `node-linux-${process.arch}`;
        expect(await run('npm', ['install', ...QUIET, '--prefix', place, `${name}@${release}`], folder)).toMatchObject({ code: 0 });
        const program = path.join(place, 'node_modules', name, 'bin/node');
        const { code, stdout } = await node(['hello.mjs'], project, {}, program);
        expect([release, code, stdout]).toEqual([release, 0, RESULT]);
        const build = ['node_modules/millrace/dist/cli/main.js', 'build', 'enum.ts', '--for', PROCESSOR];
        const { stderr } = await node(build, project, {}, program);
        expect(stderr).toMatch(
          /^(?:Node v20\S* does not read TypeScript|\S+ cannot be imported:\n[^]*SyntaxError)[^]*npm install --save-dev tsx\.\n/,
        );
      }
    },
    300_000,
  );
});

describe('what is missing is named', () => {
  test('the platform package, with a command that installs it', async () => {
    const project = copy('no-addon', { 'says.mjs': SAYS, 'testing.mjs': TESTING, 'hello.mjs': IMPORTS + HELLO }, true);
    rmSync(path.join(project, 'node_modules/@millrace'), { recursive: true });
    const { stdout } = await node(['says.mjs'], project);
    expect(stdout).toMatch(
      /^UnavailableError The native addon for linux \w+, glibc [\d.]+ is not installed: it is not in the package @millrace\//,
    );
    expect(stdout).not.toContain('npm run build');
    // As on Alpine, for which npm installs no addon.
    const report = `const { report } = process; const whole = report.getReport.bind(report);
      report.getReport = () => { const made = whole(); delete made.header.glibcVersionRuntime; return made; };`;
    writeFileSync(path.join(project, 'musl.cjs'), report);
    expect((await node(['--require', './musl.cjs', 'says.mjs'], project)).stdout).toMatch(
      /^UnavailableError Millrace has no devices on linux \w+, musl: .*need Linux with glibc on x64 or arm64\.\n +Use .*node:22-slim in place of node:22-alpine\./,
    );
    expect((await node(['testing.mjs'], project)).stdout).toBe('Float32Array(3) [ 7, 7, 7 ]\n');
    const command = /^ +Install it: npm (.*)$/m.exec(stdout)?.[1]?.split(' ') ?? [];
    expect(await run('npm', [...command, ...QUIET], project)).toMatchObject({ code: 0 });
    expect(await node(['hello.mjs'], project)).toEqual({ code: 0, stdout: RESULT, stderr: '' });
  });

  test('a system without devices, for which npm installs no addon', async () => {
    const project = registry.project(path.join(folder, 'elsewhere'), { 'says.mjs': SAYS, 'testing.mjs': TESTING });
    expect(await run('npm', ['install', ...QUIET, '--os=darwin', '--cpu=arm64'], project)).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(path.join(project, 'node_modules'))).not.toContain('@millrace');
    const system = path.join(project, 'system.cjs');
    writeFileSync(system, `Object.defineProperty(process, 'platform', { value: 'darwin' });`);
    expect((await node(['--require', system, 'says.mjs'], project)).stdout).toMatch(/^UnavailableError Millrace has no devices on darwin/);
    expect((await node(['--require', system, 'testing.mjs'], project)).stdout).toBe('Float32Array(3) [ 7, 7, 7 ]\n');
  });

  test('the compiler of kernels', async () => {
    const project = copy('no-compiler', { 'hello.mjs': `${IMPORTS}${HELLO.replace('hello();', 'await hello();')}` });
    const { code, stderr } = await node(['hello.mjs'], project, { PATH: '/none', MILLRACE_CACHE: 'off' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/UnavailableError: K701: No C\+\+ compiler was found.*\n +Install one: apt-get install g\+\+/);
  });
});
