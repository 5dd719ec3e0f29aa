// Every TypeScript block of README.md is a whole program: it is compiled as a stranger would compile it and run. A comment
// "// prints: text" at the end of a line is compared with the output, in order. Shell blocks may only name scripts that exist.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const compiler = join(root, 'node_modules/typescript/bin/tsc');
// Inside the project, so that the programs find millrace by its own name.
const folder = join(root, 'build/readme');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

const blocks = (language: string): string[] =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map((match) => match[1] ?? '');
const programs = blocks('ts').map((text, index) => ({ text, index, title: `block ${index + 1}: ${text.trim().split('\n')[0]}` }));

const needsCompiler = existsSync(compiler) ? undefined : 'TypeScript is not installed here';

beforeAll(() => {
  if (needsCompiler !== undefined || programs.length === 0) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { text, index } of programs) writeFileSync(join(folder, `block-${index + 1}.ts`), text);
  const compilerOptions = {
    strict: true,
    target: 'ES2022',
    module: 'NodeNext',
    lib: ['ES2023', 'ESNext.Disposable'],
    types: ['node'],
    rootDir: '.',
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const compiled = spawnSync(process.execPath, [compiler, '-p', folder], { encoding: 'utf8' });
  if (compiled.status !== 0) throw new Error(`README.md does not compile:\n${compiled.stdout}`);
});

test('there is something to try', () => {
  expect(programs.length).toBeGreaterThan(0);
});

test.for(programs)('$title', ({ text, index }, context) => {
  if (needsCompiler !== undefined) context.skip(needsCompiler);
  const ran = spawnSync(process.execPath, [join(folder, `block-${index + 1}.js`)], { encoding: 'utf8', cwd: root, timeout: 25_000 });
  expect({ status: ran.status, signal: ran.signal, stderr: ran.stderr }).toEqual({ status: 0, signal: null, stderr: '' });
  const expected = [...text.matchAll(/\/\/ prints: (.*)$/gm)].map((match) => match[1]);
  if (expected.length > 0) expect(ran.stdout.trim().split('\n')).toEqual(expected);
});

test('shell blocks name scripts that exist', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const named = blocks('sh').flatMap((text) => [...text.matchAll(/npm (?:run )?([a-z:]+)/g)].map((match) => match[1]!));
  expect(named.filter((name) => !['ci', 'install', 'i'].includes(name) && !(name in scripts))).toEqual([]);
});
