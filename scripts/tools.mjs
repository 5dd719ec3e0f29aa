// Functions that the other scripts share: the project's folder, and running a program.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
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

/** Runs cmake, or a program that runs it; what it printed is shown if it fails or warns, and with --verbose. */
export function runQuietly(program, args) {
  const isShown = process.argv.includes('--verbose');
  const { error, status, stdout, stderr } = spawnSync(program, args, {
    ...{ cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, stdio: isShown ? 'inherit' : 'pipe' },
  });
  if (error) throw error;
  if (!isShown && (status !== 0 || /\bwarning: /.test(stdout + stderr))) console.error(`${stdout}${stderr}`);
  if (status !== 0) process.exit(status ?? 1);
}

/** Removes a build folder of cmake that was copied or moved here: it would build in the folder where it was made. */
export function removeForeignBuild(folder) {
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const [, made] = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8')) ?? [];
  if (made !== undefined && existsSync(made) && realpathSync(made) === realpathSync(root)) return;
  console.log(`${folder} was made for ${made ?? 'another folder'}: it is made anew.`);
  rmSync(folder, { recursive: true });
}

/** The JavaScript file behind a command of an installed package. */
export function bin(packagePath) {
  return join(root, 'node_modules', packagePath);
}

/** Removes what an earlier build compiled from a source that is gone or has another name, and the folders that are empty then. */
export function removeStale(compiled, sources) {
  for (const entry of readdirSync(compiled, { withFileTypes: true })) {
    const path = join(compiled, entry.name);
    if (entry.isDirectory()) {
      removeStale(path, join(sources, entry.name));
      if (readdirSync(path).length === 0) rmdirSync(path);
      continue;
    }
    // Files with other endings have other sources, and belong to the scripts that wrote them.
    const source = /^(.*)(?:\.js|\.d\.ts)(?:\.map)?$/.exec(entry.name)?.[1];
    if (source !== undefined && !existsSync(join(sources, `${source}.ts`))) rmSync(path);
  }
}

export function onPath(...programs) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return programs.find((program) => folders.some((folder) => existsSync(join(folder, program))));
}
