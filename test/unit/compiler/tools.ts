// The build tools that users' kernels may pass through: how to run each one on a module, and how to run the result in its own process. They
// run in a folder of the repository, so that imports resolve.
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { transform as transformWithSwc, type Options as SwcOptions } from '@swc/core';
import { build, type BuildOptions } from 'esbuild';
import { minify } from 'terser';

const ROOT: string = fileURLToPath(new URL('../../../', import.meta.url));
const FIXTURES: string = fileURLToPath(new URL('./fixtures/', import.meta.url));
const run = promisify(execFile);
const require = createRequire(import.meta.url);

export interface ToolRun {
  /** Where the module's TypeScript is. */
  readonly folder: string;
  /** Its name without `.ts`. */
  readonly module: string;
}

export interface Tool {
  readonly name: string;
  /** Names are shortened, so that free ones cannot be trusted. */
  readonly isMinifier?: boolean;
  /** Options for node, and the path of what it imports. */
  readonly make: (given: ToolRun) => Promise<{ readonly options?: readonly string[]; readonly path: string }>;
}

async function bundled({ folder, module }: ToolRun, options: BuildOptions = {}): Promise<{ path: string }> {
  const path = join(folder, 'bundle.mjs');
  const sourcemap = options.sourcemap ?? 'inline';
  await build({
    entryPoints: [join(folder, `${module}.ts`)],
    bundle: true,
    format: 'esm',
    platform: 'node',
    outfile: path,
    logLevel: 'error',
    ...options,
    sourcemap,
  });
  return { path };
}

/** Each module of the folder separately. */
async function eachWithSwc({ folder, module }: ToolRun, format: 'es6' | 'commonjs', options: SwcOptions = {}): Promise<{ path: string }> {
  const extension = format === 'es6' ? 'mjs' : 'cjs';
  for (const name of ['define', 'intrinsics', module]) {
    const source = await readFile(join(folder, `${name}.ts`), 'utf8').catch(() => undefined);
    if (source === undefined) continue;
    const { code, map } = await transformWithSwc(source, {
      filename: join(folder, `${name}.ts`),
      sourceMaps: true,
      ...options,
      jsc: { parser: { syntax: 'typescript' }, target: 'es2022', ...options.jsc },
      module: { type: format },
    });
    const path = join(folder, `${name}.${extension}`);
    await writeFile(`${path}.map`, map!);
    await writeFile(
      path,
      `${code.replace(/(["']\.\/\w+)\.js(["'])/g, `$1.${extension}$2`)}\n//# sourceMappingURL=${name}.${extension}.map\n`,
    );
  }
  return { path: join(folder, `${module}.${extension}`) };
}

async function eachWithTsc({ folder, module }: ToolRun, format: 'esnext' | 'commonjs', target = 'es2022'): Promise<{ path: string }> {
  const out = join(folder, 'out');
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['--ignoreConfig', '--noCheck', '--sourceMap', '--moduleResolution', 'bundler', '--module', format, '--target', target];
  await run(process.execPath, [compiler, ...options, '--rootDir', folder, '--outDir', out, join(folder, `${module}.ts`)]);
  await writeFile(join(out, 'package.json'), JSON.stringify({ type: format === 'esnext' ? 'module' : 'commonjs' }));
  return { path: join(out, `${module}.js`) };
}

async function withTerser(given: ToolRun): Promise<{ path: string }> {
  const { path } = await bundled(given);
  const code = await readFile(path, 'utf8');
  const result = await minify(code, {
    module: true,
    toplevel: true,
    compress: { passes: 3 },
    mangle: true,
    sourceMap: { content: 'inline', url: 'inline' },
  });
  await writeFile(path, result.code!);
  return { path };
}

const SWC_MINIFY: SwcOptions = { minify: true, jsc: { minify: { compress: true, mangle: true, module: true, toplevel: true } } };

export const TOOLS: readonly Tool[] = [
  {
    name: 'tsx, ES modules',
    make: async ({ folder, module }) => ({
      options: ['--import', pathToFileURL(require.resolve('tsx')).href],
      path: join(folder, `${module}.ts`),
    }),
  },
  {
    name: 'tsx, CommonJS',
    make: async ({ folder, module }) => {
      await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'commonjs' }));
      return { options: ['--require', require.resolve('tsx/cjs')], path: join(folder, `${module}.ts`) };
    },
  },
  { name: 'esbuild', make: async (given) => bundled(given) },
  { name: 'esbuild for ES2015', make: async (given) => bundled(given, { target: 'es2015' }) },
  { name: 'esbuild, map beside the bundle', make: async (given) => bundled(given, { sourcemap: 'linked' }) },
  { name: 'esbuild, minified', isMinifier: true, make: async (given) => bundled(given, { minify: true }) },
  { name: 'esbuild, minified, names kept', isMinifier: true, make: async (given) => bundled(given, { minify: true, keepNames: true }) },
  { name: 'swc, ES modules', make: async (given) => eachWithSwc(given, 'es6') },
  { name: 'swc, CommonJS', make: async (given) => eachWithSwc(given, 'commonjs') },
  {
    name: 'swc for ES5',
    make: async (given) => eachWithSwc(given, 'commonjs', { jsc: { parser: { syntax: 'typescript' }, target: 'es5' } }),
  },
  { name: 'swc, minified', isMinifier: true, make: async (given) => eachWithSwc(given, 'es6', SWC_MINIFY) },
  { name: 'terser', isMinifier: true, make: async (given) => withTerser(given) },
  { name: 'tsc, ES modules', make: async (given) => eachWithTsc(given, 'esnext') },
  { name: 'tsc, CommonJS', make: async (given) => eachWithTsc(given, 'commonjs') },
  { name: 'tsc for ES2015', make: async (given) => eachWithTsc(given, 'commonjs', 'es2015') },
];

const DEFINE = `
const of = (...given: unknown[]): unknown => given;
export { of as bool, of as f32, of as f64, of as func, of as i32, of as i8, of as inout, of as input, of as output, of as u16, of as u32, of as u8 };
export const define = (params: unknown, body: unknown): unknown => ({ params, body });
export type Definition = unknown;
`;

/** A folder for one run of one tool, with the fixtures. `more` is appended to the module's source. */
export async function toolFolder(module: string, more = ''): Promise<ToolRun> {
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp/tools-'));
  await cp(FIXTURES, folder, { recursive: true });
  await writeFile(join(folder, 'define.ts'), DEFINE);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  if (more !== '') await writeFile(join(folder, `${module}.ts`), `${await readFile(join(folder, `${module}.ts`), 'utf8')}\n${more}`);
  return { folder, module };
}

/** The report of the fixture `script` about the module under this tool. */
export async function through<T>(tool: Tool, module: string, script: string, more = ''): Promise<T> {
  const given = await toolFolder(module, more);
  try {
    const { options = [], path } = await tool.make(given);
    const args = [...options, join(given.folder, 'run.mjs'), join(given.folder, script), path];
    const { stdout } = await run(process.execPath, args, { env: ENVIRONMENT, maxBuffer: 64 << 20 });
    return JSON.parse(stdout) as T;
  } finally {
    await rm(given.folder, { recursive: true, force: true });
  }
}

/** The same, with the test runner as the tool. */
export async function throughVitest<T>(coverage: 'v8' | 'istanbul' | undefined, module: string, script: string, more = ''): Promise<T> {
  const { folder } = await toolFolder(module, more);
  const answer = join(folder, 'answer.json');
  const test = `
import { writeFileSync } from 'node:fs';
import { test } from 'vitest';
import * as module from './${module}.js';
import { report } from './${script}';
// The test that calls this has a limit.
test('report', { timeout: 0 }, async () => writeFileSync(${JSON.stringify(answer)}, JSON.stringify(await report(module))));
`;
  await writeFile(join(folder, 'report.test.ts'), test);
  await writeFile(join(folder, 'vitest.config.mjs'), 'export default {};\n');
  const counting = coverage === undefined ? [] : ['--coverage.enabled', `--coverage.provider=${coverage}`, '--coverage.include=**/*.ts'];
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  try {
    await run(process.execPath, [vitest, 'run', '--root', folder, ...counting], { cwd: folder, env: ENVIRONMENT });
    return JSON.parse(await readFile(answer, 'utf8')) as T;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A separate process without state of the test. */
const ENVIRONMENT: NodeJS.ProcessEnv = {
  PATH: process.env['PATH'],
  HOME: process.env['HOME'],
  MILLRACE_DIST: pathToFileURL(join(ROOT, 'dist/')).href,
};
