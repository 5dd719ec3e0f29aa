// Kills compilers and removes their folder when a signal kills this process. The guard is a small shell process: it reads
// from a pipe which process groups and which folder exist, and acts when the pipe ends, which happens with this process.
//
// The guard runs while a compiler or the folder exists, and a second longer. Without /bin/sh there is no guard: a compiler
// then outlives a killed process until it finishes, and a later process removes the folder (temporary-folder.ts).
import { type ChildProcess, spawn } from 'node:child_process';
import { keepGroup } from './exit-cleanup.js';
import { clearTimeout, setTimeout } from '../../core/base/timers.js';

/** Input lines: `+ pid` adds a group by its leader, `- pid` drops it, `d path` names the folder, `d` alone says that there is none. */
const SCRIPT = `trap '' HUP INT TERM
groups= folder=
while read -r what which; do
  case $what in
    +) groups="$groups $which" ;;
    -) others=; for group in $groups; do [ "$group" = "$which" ] || others="$others $group"; done; groups=$others ;;
    d) folder=$which ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
for time in 1 2 3 4 5; do
  [ -n "$folder" ] && ! rm -rf -- "$folder" && sleep 0.1
done`;
/** Another compiler often follows soon, and can use the same guard. */
const LINGER_MS = 1000;

class Guard {
  readonly #groups: Set<number> = new Set();
  #folder = '';
  #child: ChildProcess | undefined;
  #ending: NodeJS.Timeout | undefined;

  group(pid: number, isRunning: boolean): void {
    if (isRunning) this.#groups.add(pid);
    else this.#groups.delete(pid);
    this.#tell(`${isRunning ? '+' : '-'} ${pid}`);
  }

  /** Names the folder; an empty path says that there is none. */
  folder(path: string): void {
    // A path with a newline does not fit a line of the guard's input.
    this.#folder = path.includes('\n') ? '' : path;
    this.#tell(`d ${this.#folder}`);
  }

  #tell(line: string): void {
    const isIdle = this.#groups.size === 0 && this.#folder === '';
    clearTimeout(this.#ending);
    if (this.#child !== undefined) this.#child.stdin?.write(`${line}\n`);
    else if (!isIdle) this.#start();
    if (isIdle) this.#ending = setTimeout(() => this.#end(), LINGER_MS).unref();
  }

  #start(): void {
    const child = spawn('/bin/sh', ['-c', SCRIPT], {
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' },
      // In its own session, so that signals from the terminal do not reach it.
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const forget = (): void => {
      if (child.pid !== undefined) keepGroup(child.pid, false);
      if (this.#child === child) this.#child = undefined;
    };
    child.once('error', forget);
    child.once('exit', forget);
    if (child.pid === undefined) return;
    keepGroup(child.pid, true);
    child.unref();
    // A write fails when somebody killed the guard; builds go on without it.
    child.stdin.on('error', () => {});
    // Bun's has none.
    (child.stdin as unknown as { unref?(): void }).unref?.();
    this.#child = child;
    child.stdin.write([...Array.from(this.#groups, (pid) => `+ ${pid}`), `d ${this.#folder}`, ''].join('\n'));
  }

  #end(): void {
    const child = this.#child;
    this.#child = undefined;
    child?.stdin?.end();
  }
}

/** The guard of this thread. */
export const guard: Guard = new Guard();
