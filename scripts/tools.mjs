// Functions that the other scripts share: the project's folder, and running a program.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** How many compilers a build runs at a time, as an argument of cmake. */
export const parallel = String(availableParallelism());

/** Runs a program in the project's folder with its output shown; ends this process with its exit code when it fails. */
export function run(program, args, options = {}) {
  const result = spawnSync(program, args, { cwd: root, stdio: 'inherit', ...options });
  if (result.error) throw result.error;
  if (result.status !== 0) process.exit(result.status ?? 1);
}

/** The JavaScript file behind a command of an installed package. */
export function bin(packagePath) {
  return join(root, 'node_modules', packagePath);
}

export function onPath(...programs) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return programs.find((program) => folders.some((folder) => existsSync(join(folder, program))));
}
