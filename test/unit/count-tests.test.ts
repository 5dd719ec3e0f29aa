// scripts/count-tests.mjs as a process of its own: what it makes of the reports of a run, whole and broken.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCRIPT = join(ROOT, 'scripts/count-tests.mjs');
const NATIVE = '<testcase name="one" status="run"><system-out>ok a\n1 passed, 0 failed</system-out></testcase>';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-count-'));
  writeFileSync(join(folder, 'native.xml'), NATIVE);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly last: string;
  readonly text: string;
}

function node(args: readonly string[], cwd = ROOT): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, timeout: 60_000, env: { ...process.env, NODE_OPTIONS: '' } }, (error, stdout) =>
      resolve({ code: error === null ? 0 : Number(error.code), last: stdout.trim().split('\n').at(-1)!, text: stdout }),
    );
  });
}
const count = (status = '0'): Promise<Ended> => node([SCRIPT, folder, '0', '0', status], folder);

function report(files: readonly string[], changes: object = {}): void {
  const testResults = files.map((name) => ({ name: join(folder, name), status: 'passed', assertionResults: [{ status: 'passed' }] }));
  const counts = { numPassedTests: files.length, numFailedTests: 0, numPendingTests: 0, success: true };
  writeFileSync(join(folder, 'vitest.json'), JSON.stringify({ ...counts, testResults, ...changes }));
}
const list = (...files: readonly string[]): void =>
  writeFileSync(join(folder, 'test-files.txt'), files.map((file) => `[unit] ${file}\n`).join(''));

test('passes when every file that should run is in the report', async () => {
  list('a.test.ts', 'b.test.ts');
  report(['a.test.ts', 'b.test.ts']);
  expect(await count()).toMatchObject({ code: 0, last: '3 passed, 0 failed' });
});

test('names a test that passed at the second try, with what the first one said', async () => {
  const assertionResults = [{ status: 'passed', fullName: 'one of two', failureMessages: ['expected 1 to be 2'] }];
  report(['a.test.ts'], { testResults: [{ name: join(folder, 'a.test.ts'), status: 'passed', assertionResults }] });
  const ended = await count();
  expect(ended).toMatchObject({ code: 0, last: '2 passed, 0 failed' });
  expect(ended.text).toContain('one of two: failed before it passed:\nexpected 1 to be 2');
});

describe('fails', () => {
  test('when the report lacks a file', async () => {
    list('a.test.ts', 'b.test.ts');
    report(['a.test.ts']);
    const ended = await count();
    expect(ended).toMatchObject({ code: 1, last: '2 passed, 1 failed' });
    expect(ended.text).toContain('b.test.ts: no result');
  });

  test('when one of two projects that run a file has no result for it', async () => {
    writeFileSync(join(folder, 'test-files.txt'), '[cpu] a.test.ts\n[fake-cuda] a.test.ts\n');
    report(['a.test.ts']);
    const ended = await count();
    expect(ended).toMatchObject({ code: 1, last: '2 passed, 1 failed' });
    expect(ended.text).toContain('[fake-cuda] a.test.ts: no result');
  });

  test('when the run was no success, though no test of the report failed', async () => {
    report(['a.test.ts'], { success: false });
    expect(await count()).toMatchObject({ code: 1, last: '2 passed, 1 failed' });
  });

  test('when the test command failed, though the reports name no failure', async () => {
    report(['a.test.ts']);
    expect(await count('1')).toMatchObject({ code: 1, last: '2 passed, 1 failed' });
  });

  test('when a report is missing or cut off', async () => {
    expect(await count()).toMatchObject({ code: 1, last: '1 passed, 1 failed' });
    writeFileSync(join(folder, 'vitest.json'), '{"testResults": [');
    expect(await count()).toMatchObject({ code: 1, last: '1 passed, 1 failed' });
  });

  test('when the process of a test file is killed', { timeout: 60_000 }, async () => {
    writeFileSync(join(folder, 'a.test.ts'), `import { test } from '${ROOT}/node_modules/vitest/dist/index.js'; test('a', () => {});`);
    writeFileSync(
      join(folder, 'b.test.ts'),
      `import { test } from '${ROOT}/node_modules/vitest/dist/index.js'; test('b', () => process.kill(process.pid, 'SIGKILL'));`,
    );
    const output = join(folder, 'vitest.json');
    const args = ['run', '--root', folder, '--pool', 'forks', '--reporter', 'json', '--outputFile', output];
    const ran = await node([join(ROOT, 'node_modules/vitest/vitest.mjs'), ...args], folder);
    expect(ran.code).not.toBe(0);
    // Without the exit status, too.
    const ended = await count();
    expect(ended).toMatchObject({ code: 1, last: '2 passed, 1 failed' });
    expect(ended.text).toContain('b: its process ended before it did');
  });
});
