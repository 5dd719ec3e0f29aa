// A compiler as a child process: never blocks the thread, never outlives its time.
import { spawn } from 'node:child_process';

export interface CompilerRun {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** It was stopped because it took longer than `timeoutMs`. */
  readonly isTimedOut: boolean;
}

export interface RunOptions {
  readonly input?: string;
  readonly timeoutMs?: number;
}

/** A kernel takes 0.1 s; a text that takes this long never ends (endless template recursion, a hung file system). */
export const COMPILER_TIMEOUT_MS = 120_000;
/** What is kept of each output stream: template errors can run to gigabytes. */
const MAX_OUTPUT_CHARS = 1 << 20;
/** All that a compiler needs of the environment. What changes its output must not come through here: it is not in the cache key. */
const PASSED_ON: readonly string[] = ['PATH', 'HOME', 'TMPDIR', 'LD_LIBRARY_PATH', 'CUDA_HOME', 'CUDA_PATH', 'MILLRACE_CXX', 'CXX'];

function environment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { LC_ALL: 'C' };
  for (const name of PASSED_ON) {
    if (process.env[name] !== undefined) env[name] = process.env[name];
  }
  return env;
}

/** Rejects only when the program cannot be started. */
export function runCompiler(command: string, args: readonly string[], options: RunOptions = {}): Promise<CompilerRun> {
  return new Promise((resolve, reject) => {
    // A group of its own: compiler drivers start other programs, which a signal to the driver alone would leave running.
    const child = spawn(command, args, { env: environment(), detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    let isTimedOut = false;
    const timer = setTimeout(() => {
      isTimedOut = true;
      try {
        process.kill(-child.pid!, 'SIGKILL');
      } catch {
        // It ended by itself this very moment.
      }
    }, options.timeoutMs ?? COMPILER_TIMEOUT_MS);
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text.slice(0, MAX_OUTPUT_CHARS - output[name].length);
      });
    }
    // A program that does not read its input to the end is no failure of ours: its exit code tells.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (exitCode) => {
      clearTimeout(timer);
      resolve({ exitCode, ...output, isTimedOut });
    });
  });
}
