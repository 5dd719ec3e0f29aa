// The catalogue of the codes that a CompileError has: what the library reports, and what the documentation says.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPILE_CODES } from '../../src/core/base/compile-codes.js';

const ROOT = join(import.meta.dirname, '../..');
const CATALOGUE = 'core/base/compile-codes.ts';
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const anchorsOf = (page: string): string[] =>
  [...read(`docs/${page}`).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );

test('the catalogue has the codes that the library reports, and no others', () => {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const code = files.filter((file) => file !== CATALOGUE).map((file) => read(`src/${file}`).replace(/^\s*(?:\/\/|\/?\*).*$/gm, ''));
  const reported = code.flatMap((text) => text.match(/(?<=['`])K\d{3}(?=[':])/g) ?? []);
  expect([...new Set(reported)].toSorted()).toEqual(Object.keys(COMPILE_CODES));
});

test('the documentation has a row of each code, with a section that exists', () => {
  const rows = [...read('docs/kernel-language.md').matchAll(/^\| (K\d{3}) \| (.+) \|$/gm)].map(([, code, text]) => [code, text]);
  expect(Object.fromEntries(rows)).toEqual(COMPILE_CODES);
  for (const row of Object.values(COMPILE_CODES)) {
    const [, page, anchor] = /^[^|]+ \| [^|]+ \| \[.+\]\((.*)#(.+)\)$/.exec(row) ?? [];
    expect(anchorsOf(page || 'kernel-language.md')).toContain(anchor);
  }
});
