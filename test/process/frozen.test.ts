// Programs that freeze the objects of the language.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('kernels of both languages are made, launched and read with --frozen-intrinsics', () => {
  const program = fileURLToPath(new URL('./programs/frozen.mjs', import.meta.url));
  const options = { encoding: 'utf8', timeout: 60_000, env: { ...process.env, NODE_OPTIONS: '' } } as const;
  const run = spawnSync(process.execPath, ['--frozen-intrinsics', program], options);
  expect(run.stderr.replaceAll(/^\(.*\)? .*\n/gm, '')).not.toContain('Error');
  expect(run.stdout.trim().split('\n')).toEqual(['4 6 8', 'StreamHazardError', 'CompileError']);
  expect(run.status).toBe(0);
});
