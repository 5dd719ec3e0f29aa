// Formats TypeScript with Biome and C++ with clang-format. `--check` writes nothing and fails when a file would change.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bin, root, run } from './tools.mjs';

const isCheck = process.argv.includes('--check');
const cpp = ['native', 'test/native', 'bench/native'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true })
    .filter((file) => /\.(h|cpp)$/.test(file) && !file.endsWith('.gen.h'))
    .map((file) => join(folder, file)),
);

const text = ['bench', 'examples', 'page', 'scripts', 'site', 'src', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts'];
run(process.execPath, [bin('@biomejs/biome/bin/biome'), 'format', ...(isCheck ? [] : ['--write']), ...text]);
run(bin('clang-format/bin/linux_x64/clang-format'), [...(isCheck ? ['--dry-run', '-Werror'] : ['-i']), ...cpp]);
