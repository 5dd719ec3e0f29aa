// Writes the headers of native/headers.txt, which have one line each, to dist/headers.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from './tools.mjs';

export function writeHeaders() {
  const folder = join(root, 'dist/headers');
  rmSync(folder, { recursive: true, force: true });
  let [device, text] = [];
  for (const line of readFileSync(join(root, 'native/headers.txt'), 'utf8').split('\n')) {
    if (/^\w/.test(line)) [, device, text] = /^(\w+): (.+)$/.exec(line);
    if (!line.startsWith(' ')) continue;
    for (const name of line.trim().split(' ')) {
      const file = join(folder, device, name);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text.startsWith('//') ? `${text}\n#pragma once\n` : `${text}\n`);
    }
  }
}
