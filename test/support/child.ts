// Runs a few lines of JavaScript in a process of their own, with the library at hand: for what a test cannot survive
// or would disturb.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { SLOWNESS } from './slowness.js';

const ROOT = path.resolve(import.meta.dirname, '../..');

export interface ChildResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `code` is an ES module; its environment is this process's, with `env` on top. Killed after `timeoutMs`. */
export function runChild(code: string, env: Readonly<Record<string, string>> = {}, timeoutMs = SLOWNESS * 30_000): Promise<ChildResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
      cwd: ROOT,
      env: { ...process.env, NODE_OPTIONS: '', ...env },
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', reject);
    child.once('close', (exit, signal) => resolve({ code: exit, signal, stdout, stderr }));
  });
}
