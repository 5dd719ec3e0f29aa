// The code of a device's worker opens files by synchronous calls alone, so that a worker which is terminated leaves no descriptor open
// (docs/decisions/0030-files-are-opened-by-synchronous-calls.md).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../../src', import.meta.url));
/** What runs in a device's worker. */
const FOLDERS = ['toolchain', 'workers', 'native', 'compiler', 'cuda-cpp'];
/** Each of their system calls opens nothing, or opens and closes within one call of libuv. */
const PROMISES_WITHOUT_DESCRIPTOR: readonly string[] = ['readdir', 'rm', 'stat'];
/** `opendirSync` gives a descriptor that no `closeSync` names. */
const isSynchronous = (name: string): boolean => (name.endsWith('Sync') && name !== 'opendirSync') || name === 'constants';

/** What the text imports that may leave a descriptor open. */
function unsafeImports(text: string): string[] {
  const found: string[] = [];
  for (const [, type, names = '', target] of text.matchAll(/^import\s+(type\s)?([^'";]*?)\s*from\s+'((?:node:)?fs(?:\/promises)?)'/gm)) {
    if (type !== undefined) continue;
    const list = /^\{([^}]*)\}$/.exec(names)?.[1];
    const imported = list === undefined ? [names] : list.split(',').map((name) => name.trim().replace(/ as .*/, ''));
    for (const name of imported.filter((each) => each !== '' && !each.startsWith('type '))) {
      const isSafe = target!.endsWith('promises') ? PROMISES_WITHOUT_DESCRIPTOR.includes(name) : isSynchronous(name);
      if (!isSafe) found.push(`${name} of ${target}`);
    }
  }
  return found;
}

test("the code of a device's worker opens files by synchronous calls", () => {
  const found = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => unsafeImports(readFileSync(join(root, folder, file), 'utf8')).map((name) => `${folder}/${file}: ${name}`)),
  );
  expect(found).toEqual([]);
});

test('imports that may leave a descriptor open are recognised', () => {
  const text = `import { readFile, stat } from 'node:fs/promises';
import {
  openSync,
  type Stats,
  createReadStream as stream,
} from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import * as fs from 'node:fs';
import { opendirSync, promises } from 'fs';
`;
  expect(unsafeImports(text)).toEqual([
    'readFile of node:fs/promises',
    'createReadStream of node:fs',
    '* as fs of node:fs',
    'opendirSync of fs',
    'promises of fs',
  ]);
});
