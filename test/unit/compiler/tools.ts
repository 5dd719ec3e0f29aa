// The build tools that users' kernels may pass through: how to run each one on modules, and how to run the result in its own process. They
// run in a folder of the repository, so that imports resolve.
import { execFile } from 'node:child_process';
import { appendFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
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
  /** Where the TypeScript of the modules is. */
  readonly folder: string;
  /** Their names without `.ts`. */
  readonly modules: readonly string[];
}

export interface Tool {
  readonly name: string;
  /** Names are shortened, so that free ones cannot be trusted. */
  readonly isMinifier?: boolean;
  /** Options for node, and the paths of what it imports, one for each module. */
  readonly make: (given: ToolRun) => Promise<Made>;
}
interface Made {
  readonly options?: readonly string[];
  readonly paths: readonly string[];
}

async function bundled({ folder, modules }: ToolRun, options: BuildOptions = {}): Promise<Made> {
  const sourcemap = options.sourcemap ?? 'inline';
  const paths = modules.map((module) => join(folder, `${module}_bundle.mjs`));
  for (const [at, module] of modules.entries())
    await build({
      entryPoints: [join(folder, `${module}.ts`)],
      bundle: true,
      format: 'esm',
      platform: 'node',
      outfile: paths[at]!,
      logLevel: 'error',
      ...options,
      sourcemap,
    });
  return { paths };
}

/** Each module of the folder separately. */
async function eachWithSwc({ folder, modules }: ToolRun, format: 'es6' | 'commonjs', options: SwcOptions = {}): Promise<Made> {
  const extension = format === 'es6' ? 'mjs' : 'cjs';
  for (const name of ['define', 'intrinsics', ...modules]) {
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
  return { paths: modules.map((module) => join(folder, `${module}.${extension}`)) };
}

async function eachWithTsc({ folder, modules }: ToolRun, format: 'esnext' | 'commonjs', target = 'es2022'): Promise<Made> {
  const files = modules.map((module) => join(folder, `${module}.ts`));
  const out = join(folder, 'out');
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['--ignoreConfig', '--noCheck', '--sourceMap', '--moduleResolution', 'bundler', '--module', format, '--target', target];
  await run(process.execPath, [compiler, ...options, '--rootDir', folder, '--outDir', out, ...files]);
  await writeFile(join(out, 'package.json'), JSON.stringify({ type: format === 'esnext' ? 'module' : 'commonjs' }));
  return { paths: modules.map((module) => join(out, `${module}.js`)) };
}

async function withTerser(given: ToolRun): Promise<Made> {
  const made = await bundled(given);
  for (const path of made.paths) {
    const code = await readFile(path, 'utf8');
    const result = await minify(code, {
      module: true,
      toplevel: true,
      compress: { passes: 3 },
      mangle: true,
      sourceMap: { content: 'inline', url: 'inline' },
    });
    await writeFile(path, result.code!);
  }
  return made;
}

const SWC_MINIFY: SwcOptions = { minify: true, jsc: { minify: { compress: true, mangle: true, module: true, toplevel: true } } };

export const TOOLS: readonly Tool[] = [
  {
    name: 'tsx, ES modules',
    make: async ({ folder, modules }) => ({
      options: ['--import', pathToFileURL(require.resolve('tsx')).href],
      paths: modules.map((module) => join(folder, `${module}.ts`)),
    }),
  },
  {
    name: 'tsx, CommonJS',
    make: async ({ folder, modules }) => {
      await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'commonjs' }));
      return { options: ['--require', require.resolve('tsx/cjs')], paths: modules.map((module) => join(folder, `${module}.ts`)) };
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

/** A module of the fixtures, and the fixture that reports about it. */
export interface Asked {
  readonly module: string;
  readonly script: string;
  /** Appended to the module's source. */
  readonly more?: string;
}

/** A folder for one run of one tool, with the fixtures. */
async function toolFolder(asked: readonly Asked[]): Promise<ToolRun> {
  await mkdir(join(ROOT, '.tmp'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.tmp/tools-'));
  await cp(FIXTURES, folder, { recursive: true });
  await writeFile(join(folder, 'define.ts'), DEFINE);
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
  for (const { module, more } of asked) if (more !== undefined) await appendFile(join(folder, `${module}.ts`), `\n${more}`);
  return { folder, modules: asked.map(({ module }) => module) };
}

/** The reports about the modules under this tool, from one process. */
export async function through<T>(tool: Tool, asked: readonly Asked[]): Promise<T> {
  const given = await toolFolder(asked);
  const { folder } = given;
  try {
    const { options = [], paths } = await tool.make(given);
    const pairs = asked.flatMap(({ script }, at) => [join(folder, script), paths[at]!]);
    const { stdout } = await run(process.execPath, [...options, join(folder, 'run.mjs'), ...pairs], {
      env: ENVIRONMENT,
      maxBuffer: 64 << 20,
    });
    return JSON.parse(stdout) as T;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The same, with the test runner as the tool. */
export async function throughVitest<T>(coverage: 'v8' | 'istanbul' | undefined, asked: readonly Asked[]): Promise<T> {
  const { folder } = await toolFolder(asked);
  const answer = join(folder, 'answer.json');
  const imports = asked.map(
    ({ module, script }, at) => `import * as module${at} from './${module}.js';\nimport { report as report${at} } from './${script}';`,
  );
  const reports = asked.map((_one, at) => `await report${at}(module${at})`);
  const test = `
import { writeFileSync } from 'node:fs';
import { test } from 'vitest';
${imports.join('\n')}
// The test that calls this has a limit.
test('report', { timeout: 0 }, async () => writeFileSync(${JSON.stringify(answer)}, JSON.stringify([${reports.join(', ')}])));
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
