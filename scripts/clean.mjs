// Removes the files that the other scripts generate.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './tools.mjs';

for (const folder of ['build', 'dist', 'coverage', 'out']) rmSync(join(root, folder), { recursive: true, force: true });
