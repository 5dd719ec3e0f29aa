// The event loop has its turns while the library works, whatever is called: the program measures each kind of call (S509).
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = join(root, 'test/process/programs/loop-turns.mjs');

/** CPU time of the loop's thread without garbage collections: a loop without turns takes several times as long. */
const MOST_MS = 20;

/** Calls that submit at most some records or look something up, however much is pending. */
const SHORT = new Set([
  'adopt', // A message to the device, and one record.
  'captureIf', // As the function of the capture.
  'captureSwitch',
  'captureWhile',
  'edges',
  'empty',
  'full',
  'global',
  'inspect',
  'interprocess',
  'ipcHandle',
  'isSameDevice',
  'kernel',
  'ones',
  'openIpcArray',
  'openIpcEvent',
  'pin',
  'run', // As its function.
  'setCurrentStream',
  'share',
  'subarray',
  'toDot', // One string, returned at the call.
  'transpose',
  'view',
  'waitEvent',
  'waitStream',
  'wrapStream',
]);

test('each method of the public classes is in a case of the program, or is a short call', () => {
  const text = readFileSync(program, 'utf8');
  const files = ['device', 'stream', 'recorder', 'array-factory', 'array', 'pinned', 'event', 'graph', 'texture', 'cuda-module'];
  const names = new Set(
    [...files.map((file) => `api/${file}`), 'operations/operation'].flatMap((file) => {
      const declared = readFileSync(join(root, `dist/core/${file}.d.ts`), 'utf8');
      return [...declared.matchAll(/^ {4}(?:abstract )?([a-zA-Z]+)[(<]/gm)].map(([, name]) => name as string);
    }),
  );
  names.delete('constructor');
  expect(names.size).toBeGreaterThan(40);
  const isInCase = (name: string): boolean => new RegExp(`\\.${name}\\(`).test(text);
  expect([...names].filter((name) => !isInCase(name) && !SHORT.has(name))).toEqual([]);
  expect([...SHORT].filter((name) => isInCase(name))).toEqual([]);
});

test(`S509 no turn of the event loop takes ${MOST_MS} ms of the thread, whatever is called`, { timeout: 120_000 }, () => {
  const env = { ...process.env, MILLRACE_MOST_MS: String(MOST_MS) };
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'cpu'], { cwd: root, encoding: 'utf8', env, timeout: 110_000 });
  expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: '' });
});
