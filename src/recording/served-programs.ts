// The files by which `npx millrace top` finds the programs of this user that serve a live view: each has an address with its token, so no
// other user may read it.
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const OTHERS = 0o077;
const SUFFIX = '.served.json';

/** What a file says. */
export interface ServedProgram {
  readonly pid: number;
  readonly url: string;
}

/** The folder of this user: in its runtime folder, else in the temporary one. */
function runtimeFolder(): string {
  const { XDG_RUNTIME_DIR } = process.env;
  return XDG_RUNTIME_DIR ? join(XDG_RUNTIME_DIR, 'millrace') : join(tmpdir(), `millrace-${process.geteuid!()}-served`);
}

/** The folder, if it is this user's alone; undefined without one that is. */
function ownFolder(isMade: boolean): string | undefined {
  const folder = runtimeFolder();
  try {
    if (isMade) mkdirSync(folder, { mode: 0o700 });
  } catch {
    // It is there, or the next call fails.
  }
  try {
    const facts = lstatSync(folder);
    return facts.isDirectory() && facts.uid === process.geteuid!() && (facts.mode & OTHERS) === 0 ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** Returns what takes it back. Where the file cannot be written, the program is served all the same. */
export function announce(program: ServedProgram): () => void {
  const folder = ownFolder(true);
  if (folder === undefined) return () => undefined;
  const file = join(folder, `${program.pid}-${new URL(program.url).port}${SUFFIX}`);
  try {
    rmSync(file, { force: true });
    writeFileSync(file, JSON.stringify(program), { mode: 0o600, flag: 'wx' });
  } catch {
    return () => undefined;
  }
  const remove = (): void => {
    process.off('exit', remove);
    rmSync(file, { force: true });
  };
  process.once('exit', remove);
  return remove;
}

/** Those that run. Removes the files of programs that ended without doing so. */
export function servedPrograms(): readonly ServedProgram[] {
  const folder = ownFolder(false);
  if (folder === undefined) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(SUFFIX))
    .flatMap((name) => {
      const file = join(folder, name);
      try {
        const program = JSON.parse(readFileSync(file, 'utf8')) as ServedProgram;
        if (isRunning(program.pid)) return [program];
        rmSync(file, { force: true });
      } catch {
        // Another program is writing or removing it.
      }
      return [];
    });
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
