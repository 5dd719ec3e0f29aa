// The programs of bench/native that run once and print what they measured.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The folder of the built programs. */
export const NATIVE: string = fileURLToPath(new URL('../../../cmake/bench/native/', import.meta.url));

/** Runs a program of bench/native and returns the JSON objects that it prints, one a line. */
export function runNative(name: string, args: readonly string[]): unknown[] {
  const result = spawnSync(`${NATIVE}${name}`, [...args], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`${name} failed (npm run bench builds it): ${result.stderr}${String(result.error ?? '')}`);
  return result.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}
