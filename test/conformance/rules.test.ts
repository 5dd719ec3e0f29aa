// Every rule of docs/semantics.md has a test, and every test names a rule.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { SKIPS } from './skips.js';

const TEXT = readFileSync(path.resolve(import.meta.dirname, '../../docs/semantics.md'), 'utf8');
const CODE = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts') && file !== path.basename(import.meta.filename))
  .map((file) => readFileSync(path.join(import.meta.dirname, file), 'utf8'))
  .join('\n');

const stated = [...TEXT.matchAll(/^- \*\*(S\d+)\*\*/gm)].map((match) => match[1]!);
const tested = new Set([...CODE.matchAll(/(?:rule\(\s*'(?=S\d+')|test\('(?=S\d+ ))(S\d+)/g)].map((match) => match[1]!));

test('S0 the rules of docs/semantics.md are numbered once, in order', () => {
  expect(stated.length).toBeGreaterThan(60);
  expect(stated).toEqual([...new Set(stated)].toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1))));
});

test('S0 every rule has a test, and every test a rule', () => {
  expect(stated.filter((rule) => !tested.has(rule))).toEqual([]);
  expect([...tested].filter((rule) => !stated.includes(rule))).toEqual([]);
});

test('S0 every listed skip names a rule and a reason', () => {
  for (const skip of SKIPS) {
    expect(stated).toContain(skip.rule);
    expect(skip.reason.length).toBeGreaterThan(20);
  }
});
