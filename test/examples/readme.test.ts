// Every TypeScript block of these pages is a whole program: it is compiled as users compile it, and run. A
// comment "// prints: text" at the end of a line is compared with the output, in order. A block that begins with "// name.ts" is a module
// of that name for the programs of its page. Shell blocks may only name scripts that exist.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';

interface Program {
  readonly title: string;
  /** The block's text, and where it is compiled to. */
  readonly text: string;
  readonly folder: string;
  readonly name: string;
  readonly isModule: boolean;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const compiler = join(root, 'node_modules/typescript/bin/tsc');
// Inside the project, so that the programs can import millrace by its name.
const output = join(root, 'build/readme');
const PAGES = [
  'README.md',
  'docs/start.md',
  'docs/tour.md',
  'docs/concepts.md',
  'docs/reactive.md',
  'docs/graphs.md',
  'docs/ends.md',
  'docs/errors.md',
  'docs/textures.md',
  'docs/operations.md',
  'docs/coming-from/cupy.md',
  'docs/coming-from/pytorch.md',
  'docs/coming-from/warp.md',
  'docs/timelines.md',
  'docs/observability.md',
] as const;
const pages = PAGES.map((page) => ({ page, text: readFileSync(join(root, page), 'utf8') }));

const blocks = (text: string, language: string): { readonly code: string; readonly at: number }[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((match) => ({ code: match[1] ?? '', at: match.index }));

const programs = pages.flatMap(({ page, text }): Program[] =>
  blocks(text, 'ts').map(({ code, at }, index) => {
    const heading = [...text.slice(0, at).matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? '';
    const moduleName = /^\/\/ (\S+)\.ts\n/.exec(code)?.[1];
    return {
      title: `${page} block ${index + 1}: ${heading}`,
      text: code,
      folder: join(output, page.replaceAll(/\W/g, '-')),
      name: moduleName ?? `block-${index + 1}`,
      isModule: moduleName !== undefined,
    };
  }),
);

const needsCompiler = existsSync(compiler) ? undefined : 'TypeScript is not installed here';

beforeAll(() => {
  if (needsCompiler !== undefined || programs.length === 0) return;
  rmSync(output, { recursive: true, force: true });
  for (const { folder, name, text } of programs) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.ts`), text);
  }
  const compilerOptions = {
    strict: true,
    target: 'ES2022',
    module: 'NodeNext',
    lib: ['ES2023', 'ESNext.Disposable'],
    types: ['node'],
    rootDir: '.',
  };
  writeFileSync(join(output, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['**/*.ts'] }));
  const compiled = spawnSync(process.execPath, [compiler, '-p', output], { encoding: 'utf8' });
  if (compiled.status !== 0) throw new Error(`The programs do not compile:\n${compiled.stdout}`);
});

// One process runs them all, one after another, and each page has programs.
test('every program of the pages prints what the page says', { timeout: 600_000 }, (context) => {
  if (needsCompiler !== undefined) context.skip(needsCompiler);
  const own = programs.filter(({ isModule }) => !isModule);
  expect(PAGES.filter((page) => !own.some(({ title }) => title.startsWith(page)))).toEqual([]);
  const start = own.map(
    ({ folder, name, title }) => `console.log('── ' + ${JSON.stringify(title)});\nawait import('${join(folder, name)}.js');\n`,
  );
  const file = join(output, 'all.mjs');
  writeFileSync(file, start.join(''));
  const env = { ...process.env, MILLRACE_CPU_DEVICES: '2' };
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8', cwd: root, env, timeout: 590_000 });
  const expected = own.map(({ title, text }) => [`── ${title}`, ...[...text.matchAll(/\/\/ prints: (.*)$/gm)].map((match) => match[1])]);
  expect({ printed: stdout.trim().split('\n'), stderr, status, signal }).toEqual({
    printed: expected.flat(),
    stderr: '',
    status: 0,
    signal: null,
  });
});

test('shell blocks name scripts that exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const named = pages
    .flatMap(({ text }) => blocks(text, 'sh'))
    .flatMap(({ code }) => [...code.matchAll(/npm (?:run )?([a-z:]+)/g)].map((match) => match[1]!));
  expect(named.filter((name) => !['ci', 'install', 'i'].includes(name) && !(name in scripts))).toEqual([]);
});
