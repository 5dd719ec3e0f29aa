// The headers that the build writes by the table native/headers.txt.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { HEADER_DIRECTORY, kernelHeaders, writeHeaders, WRITTEN_HEADERS } from '../../../src/toolchain/base/kernel-headers.js';
import { SHIM_DIRECTORY } from '../../../src/toolchain/base/package-and-cpu-identity.js';

const TABLE = readFileSync(fileURLToPath(new URL('../../../native/headers.txt', import.meta.url)), 'utf8');

function filesOf(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
}

test('each header of the table is written once, includes what there is, and hides no header of the package', () => {
  const named: string[] = [];
  let group = '';
  for (const line of TABLE.split('\n')) {
    if (/^\w/.test(line)) group = line;
    if (!line.startsWith(' ')) continue;
    const [, device = '', text = ''] = /^(\w+): (.+)$/.exec(group) ?? [];
    for (const name of line.trim().split(' ')) {
      named.push(join(device, name));
      expect(readFileSync(join(WRITTEN_HEADERS, device, name), 'utf8')).toBe(
        text.startsWith('//') ? `${text}\n#pragma once\n` : `${text}\n`,
      );
    }
    const included = /^#include [<"](.+)[>"]$/.exec(text)?.[1];
    if (included) expect([...kernelHeaders().keys(), ...filesOf(join(SHIM_DIRECTORY, 'include'))]).toContain(included);
    else expect(text).toMatch(/^\/\/ Empty/);
  }
  expect(named.toSorted()).toEqual(filesOf(WRITTEN_HEADERS).toSorted());
  for (const name of filesOf(HEADER_DIRECTORY)) expect(named).not.toContain(join('kernels', name));
  for (const name of filesOf(join(SHIM_DIRECTORY, 'include'))) expect(named).not.toContain(join('cpu', name));
  expect(named.length).toBeGreaterThan(250);
});

test('headers with one text are one file where links are possible, and files elsewhere', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-headers-'));
  const textsIn = (of: string): readonly string[] =>
    filesOf(of)
      .toSorted()
      .map((name) => `${name}: ${readFileSync(join(of, name), 'utf8')}`);
  try {
    writeHeaders(folder);
    expect(textsIn(folder)).toEqual(textsIn(WRITTEN_HEADERS));
    expect(new Set(filesOf(folder).map((name) => statSync(join(folder, name)).ino)).size).toBeLessThan(30);
    // No name can be linked, because each is there.
    writeHeaders(folder);
    expect(textsIn(folder)).toEqual(textsIn(WRITTEN_HEADERS));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
