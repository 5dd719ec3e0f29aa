// Ends compilers and removes their folder when a signal ends the process, which then runs nothing of its own: a small
// shell process that reads what there is to end, and acts when its input ends, as it does with whoever writes to it.
//
// It runs while there is something to end, and a moment longer. Where there is no /bin/sh, a compiler that runs when the
// process is killed runs on to its own end, and its folder is removed by the next process (temporary.ts).
import { type ChildProcess, spawn } from 'node:child_process';
import { keepGroup } from './leftovers.js';

/** In lines: `+ pid` and `- pid` of a group's leader, `d path` of the folder, without a path when there is none. */
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
/** One compiler is often followed by another. */
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

  /** The only one; empty: there is none. */
  folder(path: string): void {
    // A line of the guard's input cannot hold it.
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
      // The terminal's signals are not for it.
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
    // It may be gone: then there is nothing to do about it.
    child.stdin.on('error', () => {});
    (child.stdin as unknown as { unref(): void }).unref();
    this.#child = child;
    child.stdin.write([...Array.from(this.#groups, (pid) => `+ ${pid}`), `d ${this.#folder}`, ''].join('\n'));
  }

  #end(): void {
    const child = this.#child;
    this.#child = undefined;
    child?.stdin?.end();
  }
}

/** This thread's. */
export const guard: Guard = new Guard();
