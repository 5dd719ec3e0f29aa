// Runs a compiler as a child process with a time limit, without blocking the thread.
//
// The compiler leads its own process group, which is killed when the thread or the process ends for any reason. Otherwise a compiler whose
// result is no longer needed would occupy a core until it finished.
import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { guard } from '../system/guard-process.js';
import { endGroup, keepGroup } from '../system/exit-cleanup.js';
import { clearTimeout, setTimeout } from '../../core/base/timers.js';

export interface CompilerRun {
  /** Null when a signal ended the compiler. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it was stopped because it took longer than `timeoutMs`. */
  readonly isTimedOut: boolean;
}

export interface RunOptions {
  readonly input?: string;
  readonly timeoutMs?: number;
  /** TMPDIR of the compiler. A killed compiler leaves its temporary files there. */
  readonly temporary?: string;
}

/** A kernel takes about 0.1 s. Source that takes this long never finishes (endless template recursion, a hung file system). */
export const COMPILER_TIMEOUT_MS = 120_000;
/** The `nice` value of compilers: that of the threads of the CPU device. */
const COMPILER_NICE = 10;
/** Kept characters of each output stream: template errors can reach gigabytes. */
const MAX_OUTPUT_CHARS = 1 << 20;
/** Environment variables that a compiler needs. None of them may change its output, because the cache key does not include them. */
const PASSED_ON: readonly string[] = ['PATH', 'HOME', 'TMPDIR', 'LD_LIBRARY_PATH', 'CUDA_HOME', 'CUDA_PATH', 'MILLRACE_CXX', 'CXX'];

/** Where programs are if PATH is not set. */
export const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

function environment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { LC_ALL: 'C', PATH: USUAL_PATH };
  for (const name of PASSED_ON) {
    if (process.env[name] !== undefined) env[name] = process.env[name];
  }
  return env;
}

/** Rejects only when the program cannot be started: with the failed system call, or with Node's error for a NUL in an argument. */
export function runCompiler(command: string, args: readonly string[], options: RunOptions = {}): Promise<CompilerRun> {
  const env = { ...environment(), ...(options.temporary !== undefined && { TMPDIR: options.temporary }) };
  return new Promise((resolve, reject) => {
    // A group of its own: compiler drivers start other programs, which a signal to the driver alone would leave running.
    const child = spawn(command, args, { env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    child.once('error', reject);
    const { pid } = child;
    // The 'error' event follows. Without file descriptors Node made no streams, so the lines below would throw.
    if (pid === undefined) return;
    follow(pid, true);
    lowerPriority(pid);
    let isTimedOut = false;
    const timer = setTimeout(() => {
      isTimedOut = true;
      endGroup(pid);
      // A process that left the group may keep the pipes open, and 'close' would not come.
      child.stdout.destroy();
      child.stderr.destroy();
    }, options.timeoutMs ?? COMPILER_TIMEOUT_MS);
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text.slice(0, MAX_OUTPUT_CHARS - output[name].length);
      });
      // The message then lacks the output that could not be read.
      child[name].on('error', () => {});
    }
    // A compiler that stops reading its input is not an error here: its exit code tells the result.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
    child.once('exit', () => follow(pid, false));
    child.once('close', (exitCode, signal) => {
      clearTimeout(timer);
      resolve({ exitCode, signal, ...output, isTimedOut });
    });
  });
}

function follow(pid: number, isRunning: boolean): void {
  keepGroup(pid, isRunning);
  guard.group(pid, isRunning);
}

/** A compiler leaves the cores to the event loop, as the threads of the CPU device do. */
function lowerPriority(pid: number): void {
  try {
    setPriority(pid, COMPILER_NICE);
  } catch {
    // It has ended already, or the system does not allow it.
  }
}
