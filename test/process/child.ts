// Runs one of ./programs in a separate process and returns how it ended.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { listDevices } from 'millrace';
import { test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** Ends a program that hangs; the test then sees SIGKILL. */
  readonly timeoutMs?: number;
  /** Sent as soon as the program prints this line. */
  readonly kill?: { readonly when: string; readonly signal: NodeJS.Signals };
  readonly env?: Readonly<Record<string, string>>;
  /** The most that the process may have open. */
  readonly descriptors?: number;
}

/** `name`: of a file of JavaScript without its ending, or of one of TypeScript with it. */
export function runProgram(name: string, args: readonly string[], options: RunOptions = {}): Promise<Ending> {
  const file = name.endsWith('.ts') ? bundleOf(name) : fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));
  const { descriptors } = options;
  const limited = descriptors === undefined ? [] : ['/bin/sh', '-c', `ulimit -n ${descriptors}; exec "$0" "$@"`];
  const [command, ...rest] = [...limited, process.execPath, '--expose-gc', file, ...args];
  const child = spawn(command!, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '', ...options.env },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    if (options.kill && stdout.split('\n').includes(options.kill.when)) child.kill(options.kill.signal);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 25_000);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
}

const bundles = new Map<string, string>();
/** One file of JavaScript: a loader of TypeScript takes a second of each process. */
function bundleOf(name: string): string {
  const made = bundles.get(name);
  if (made !== undefined) return made;
  const outfile = path.join(ROOT, 'build/test-programs', `${path.basename(name, '.ts')}-${process.pid}.mjs`);
  const entryPoints = [path.join(import.meta.dirname, 'programs', name)];
  buildSync({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external' });
  process.once('exit', () => rmSync(outfile, { force: true }));
  bundles.set(name, outfile);
  return outfile;
}

/** The lines a program printed. */
export function linesOf(ending: Ending): string[] {
  return ending.stdout.split('\n').filter((line) => line !== '');
}

export interface DeviceCase {
  readonly spec: 'cpu' | 'cuda:0';
  /** Why its tests are skipped here. */
  readonly absent: string | undefined;
}

const devices = await listDevices();
const noCuda = devices.some((device) => device.id === 'cuda:0') ? undefined : 'this machine has no CUDA device';
export const deviceCases: readonly DeviceCase[] = [
  { spec: 'cpu', absent: undefined },
  { spec: 'cuda:0', absent: noCuda },
];

/** A test function for a device that may be absent. */
export function testOn(absent: string | undefined): (title: string, body: () => Promise<void>, timeoutMs?: number) => void {
  return (title, body, timeoutMs = 30_000) => {
    test(title, { timeout: timeoutMs }, async (context) => {
      if (absent !== undefined) context.skip(absent);
      await body();
    });
  };
}
