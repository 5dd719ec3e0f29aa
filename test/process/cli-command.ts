// Runs commands of `npx millrace` in a folder of their own, which is removed after the tests of a file.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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
