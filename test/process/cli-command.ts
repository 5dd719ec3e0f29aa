// Runs commands of `npx millrace` in a folder of their own, which is removed after the tests of a file.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll } from 'vitest';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = join(ROOT, 'dist/cli/main.js');
export const scratch = mkdtempSync(join(tmpdir(), 'millrace-cli-'));
writeFileSync(join(scratch, 'package.json'), '{}');
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function millrace(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return run(process.execPath, [MAIN, ...args], env, scratch);
}

export function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(program, args, { env: { ...process.env, ...env }, cwd }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code as unknown as number), stdout, stderr });
    });
  });
}

const CALLS = join(scratch, 'calls.mjs');
writeFileSync(
  CALLS,
  `const { exit } = process, { write } = process.stdout, ended = [];
  for (const [n, args] of JSON.parse(process.env.MILLRACE_CALLS).entries()) {
    const told = { code: undefined, stdout: '', stderr: '' };
    process.argv = [process.execPath, process.env.MILLRACE_MAIN, ...args];
    for (const name of ['stdout', 'stderr']) process[name].write = (text) => void (told[name] += text);
    told.code = await new Promise((resolve) => {
      process.exit = resolve;
      // A part of the bundle imports the one without a query.
      void import(process.env.MILLRACE_MAIN + (n === 0 ? '' : '?' + n));
    });
    ended.push(told);
  }
  write.call(process.stdout, JSON.stringify(ended), () => exit(0));`,
);

/** Calls one after the other in one process: what each prints, and the code that it would end with. */
export async function called(calls: readonly (readonly string[])[]): Promise<readonly Ended[]> {
  const env = { MILLRACE_CALLS: JSON.stringify(calls), MILLRACE_MAIN: pathToFileURL(MAIN).href, MILLRACE_CACHE_DIR: join(scratch, 'none') };
  const { code, stdout, stderr } = await run(process.execPath, [CALLS], env, scratch);
  if (code !== 0 || stderr !== '') throw new Error(`The calls ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as readonly Ended[];
}
