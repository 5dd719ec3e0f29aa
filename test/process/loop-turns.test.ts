// The event loop has its turns while the library works, whatever is called: the program measures each kind of call (S509).
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import * as millrace from 'millrace';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = join(root, 'test/process/programs/loop-turns.mjs');
const text = [program, ...['pipelines', 'calls'].map((part) => join(root, `test/process/programs/loop-turns-${part}.mjs`))]
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');

/**
 * CPU time of the loop's thread in one turn, without garbage collections: the 99th percentile of the best of some runs. Other programs take
 * the caches, and of two threads of a core half its speed.
 */
const MOST_MS = loadavg()[0]! < availableParallelism() ? 2 : 5;
/** The same of one call that cannot yield: most take a quarter of it, and a drawing of 10,000 nodes 13 to 23 ms, by machine. */
const MOST_CALL_MS = 30;

/** Calls that submit at most some records or look something up, however much is pending. */
const SHORT = new Set([
  'telemetry', // A message to the device's worker.
  'whatAreYouWaitingFor', // As inspect(), without its operations.
  'adopt', // A message to the device, and one record.
  'captureIf', // As the function of the capture.
  'captureSwitch',
  'captureWhile',
  'empty',
  'full',
  'global',
  'interprocess',
  'ipcHandle',
  'isSameDevice',
  'kernel',
  'list', // Makes the values of what `read` returns.
  'ones',
  'openIpcArray',
  'openIpcEvent',
  'partition', // A message to the device's worker.
  'pin',
  'scope', // As `run`; its end is a free for each array.
  'setCurrentStream',
  'share',
  'subarray',
  'toString', // Of at most 1,000 elements, unless the options ask for more.
  'transpose',
  'view',
  'waitEvent',
  'waitStream',
  'wrapStream',
]);

/** Declarations, conversions of the caller's values, and the same as methods of a device. */
const SHORT_FUNCTIONS = new Set([
  'nvtxState',
  'nvtxLabel',
  'nvtxStart',
  'nvtxEnd',
  'array', // As `from` of a device.
  'arrayOf',
  'bytes',
  'copy', // This and the following are the methods of a stream, too.
  'cudaKernel',
  'diagnostics', // A thread of its own looks.
  'empty',
  'fill',
  'full',
  'func',
  'getDefaultDevice',
  'getStream',
  'ones',
  'openShared', // As openDevice.
  'optional',
  'print',
  'recordEvent',
  'setDefaultDevice',
  'struct',
  'synchronizeDevice',
  'vec',
  'waitEvent',
  'waitStream',
  'withDevice',
  'zeros',
]);

test('each method of the public classes is in a case of the program, or is a short call', () => {
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

test('each exported function is in a case of the program, or is a short call', () => {
  const isFunction = (value: unknown): boolean =>
    typeof value === 'function' && !Function.prototype.toString.call(value).startsWith('class');
  const names = Object.entries(millrace).flatMap(([name, value]) => (isFunction(value) ? [name] : []));
  expect(names.length).toBeGreaterThan(30);
  const isInCase = (name: string): boolean => new RegExp(`[^.\\w]${name}\\(`).test(text);
  expect(names.filter((name) => !isInCase(name) && !SHORT_FUNCTIONS.has(name))).toEqual([]);
  expect([...SHORT_FUNCTIONS].filter((name) => isInCase(name))).toEqual([]);
});

test('S509 turns of the event loop take less than 2 ms of the thread on an idle machine, whatever is called', { timeout: 120_000 }, () => {
  const env = { ...process.env, MILLRACE_MOST_MS: String(MOST_MS), MILLRACE_MOST_CALL_MS: String(MOST_CALL_MS) };
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'cpu'], { cwd: root, encoding: 'utf8', env, timeout: 110_000 });
  expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: '' });
});
