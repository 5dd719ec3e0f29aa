// Every name that the package exports has a docstring, and so has every public member of the classes and interfaces among them. Every
// file and folder that the documentation names exists.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../src', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface Exported {
  readonly name: string;
  readonly file: string;
}

/** What a file exports, by the file that declares it. */
function exportsOf(file: string): Exported[] {
  const text = read(file);
  const found: Exported[] = [];
  for (const [, names, target] of text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)';/gm)) {
    const from = posix.join(dirname(file), target!).replace(/\.js$/, '.ts');
    const reExported = new Map(exportsOf(from).map((each) => [each.name, each.file]));
    for (const name of names!.split(',').flatMap((each) => each.trim() || [])) {
      const own = name.replace(/^type /, '').replace(/^.* as /, '');
      found.push({ name: own, file: reExported.get(own) ?? from });
    }
  }
  for (const [, name] of text.matchAll(/^export (?:declare )?(?:abstract )?(?:async )?(?:class|function|interface|type|const) ([\w$]+)/gm))
    found.push({ name: name!, file });
  return found;
}

/** The first lines of the declarations of this name: overloads have several. */
function declarationsOf(lines: readonly string[], name: string): number[] {
  const declares = new RegExp(
    `^export (?:declare )?(?:abstract )?(?:async )?(?:class|function\\*?|interface|type|const) ${name.replace('$', '\\$')}(?![\\w$])`,
  );
  return lines.flatMap((line, at) => (declares.test(line) ? [at] : []));
}

/** The docstring that ends right above this line. */
function docAbove(lines: readonly string[], at: number): string | undefined {
  if (lines[at - 1]?.trim().endsWith('*/') !== true) return undefined;
  let first = at - 1;
  while (first > 0 && !lines[first]!.includes('/*')) first--;
  const doc = lines.slice(first, at).join('\n');
  return doc.trim().startsWith('/**') ? doc : undefined;
}

/** A member of a class or an interface: its name, unless the line is not the first of one that users see. */
function memberOn(line: string): string | undefined {
  if (/^  (?:private|protected|static \{|constructor\b|#|\*|\/|\}|\)|\]|@)/.test(line)) return undefined;
  const words = /^  (?:(?:readonly|static|abstract|override|async|get|set|declare) )*(\*?\[[\w.]+\]|'[^']+'|\w+)[?!]?\s*(?=[(<:=;])/.exec(
    line,
  );
  return words?.[1];
}

/** Members without a docstring. The later overloads of a documented one, and a setter behind its getter, need none. */
function undocumentedMembers(lines: readonly string[], declaration: number): string[] {
  const missing: string[] = [];
  const documented = new Set<string>();
  for (let at = declaration + 1; at < lines.length && !lines[at]!.startsWith('}'); at++) {
    const name = memberOn(lines[at]!);
    if (name === undefined || documented.has(name)) continue;
    const doc = docAbove(lines, at);
    // What implements a well-known protocol is documented by it.
    if (doc !== undefined || name.startsWith('[Symbol.') || name === "'@@observable'") documented.add(name);
    else missing.push(name);
  }
  return [...new Set(missing)];
}

/** The same, and those of the base classes in other files: users see these members on the exported class. */
function undocumentedInherited(file: string, declaration: number): (readonly [file: string, member: string])[] {
  const text = read(file);
  const lines = text.split('\n');
  const own = undocumentedMembers(lines, declaration).map((member) => [file, member] as const);
  const base = /^export (?:abstract )?class .* extends (\w+)/.exec(lines[declaration]!)?.[1];
  const from = base && new RegExp(`^import [^;]*\\b${base}\\b[^;]* from '(\\.[^']+)';`, 'm').exec(text)?.[1];
  if (base === undefined || from === undefined) return own;
  const target = posix.join(dirname(file), from).replace(/\.js$/, '.ts');
  return [...own, ...declarationsOf(read(target).split('\n'), base).flatMap((at) => undocumentedInherited(target, at))];
}

test('every exported name and every public member of it has a docstring', () => {
  const exported = [
    ...exportsOf('index.ts'),
    ...exportsOf('collectives/index.ts'),
    ...exportsOf('queue/index.ts'),
    ...exportsOf('testing/index.ts'),
  ];
  expect(exported.length).toBeGreaterThan(100);
  const missing: string[] = [];
  for (const { name, file } of exported) {
    const lines = read(file).split('\n');
    const declarations = declarationsOf(lines, name);
    expect(declarations, `${name} in ${file}`).not.toEqual([]);
    if (!declarations.some((at) => docAbove(lines, at) !== undefined)) missing.push(`${file}: ${name}`);
    for (const at of declarations) {
      if (!/\b(?:class|interface)\b/.test(lines[at]!) && !/^export type \w+.*\{$/.test(lines[at]!)) continue;
      for (const [where, member] of undocumentedInherited(file, at)) missing.push(`${where}: ${name}.${member}`);
    }
  }
  expect(missing.join('\n')).toBe('');
});

describe('files that the documentation names', () => {
  const repository = join(root, '..');
  // gpu-runs.md reports earlier commits, and names files as they were then.
  const pagesOf = (folder: string): string[] =>
    readdirSync(join(repository, folder))
      .filter((name) => name.endsWith('.md') && name !== 'gpu-runs.md')
      .map((name) => posix.join(folder, name));
  const pages = [
    ...pagesOf('.').filter((page) => page !== 'CHANGELOG.md'),
    ...pagesOf('docs'),
    ...pagesOf('docs/coming-from'),
    ...pagesOf('docs/decisions'),
  ];
  const files = ['src', 'native', 'test', 'bench', 'scripts', 'examples', 'dist/headers'].flatMap((folder) =>
    readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' }).map((path) => `/${folder}/${path}`),
  );

  /** Names of files that are not in the repository: files that programs or readers write, and a header of the system. */
  const others = new Set(['timeline.json', 'llms.txt', 'step.mjs', 'dirent.h']);

  /** A path, or the last parts of one, which may have a wildcard, as in `test/native/explored_*`. */
  function exists(path: string): boolean {
    if (others.has(path) || existsSync(join(repository, path))) return true;
    const pattern = new RegExp(`/${path.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
    return files.some((file) => pattern.test(file));
  }
  const linksOf = (page: string): string[] =>
    [...read(join('..', page)).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target]) => posix.join(dirname(page), target!));

  test.each(pages)('of %s exist', (page) => {
    const named = [
      ...read(join('..', page)).matchAll(
        /`([\w./*-]+\.(?:cpp|h|cu|ts|mjs|md|json|txt|def)|(?:src|native|test|bench|scripts|examples|docs)\/[\w./*-]+)`/g,
      ),
    ];
    expect([...new Set([...named.map(([, path]) => path!), ...linksOf(page)])].filter((path) => !exists(path))).toEqual([]);
  });

  test('every page of docs is linked from another one', () => {
    const linked = new Set([...pages, 'CHANGELOG.md', 'docs/gpu-runs.md'].flatMap(linksOf));
    expect([...pagesOf('docs'), 'docs/gpu-runs.md'].filter((page) => !linked.has(page))).toEqual([]);
  });
});
