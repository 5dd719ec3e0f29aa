// A log that was told to tell of its operations, and no more.
import { runInThisContext } from 'node:vm';
import { setFlagsFromString } from 'node:v8';
import { expect, test } from 'vitest';
import { type LogTap, OperationLog } from '../../../src/core/timeline/operation-log.js';
import type { Timeline } from '../../../src/core/timeline/timeline.js';
import { Opcode } from '../../../src/protocol/protocol.gen.js';

test('a log tells a tap of its operations while it has one, and is as fast as before afterwards', () => {
  setFlagsFromString('--allow-natives-syntax');
  const isFast = runInThisContext('(object) => %HasFastProperties(object)') as (object: object) => boolean;
  const log = new OperationLog({} as Timeline, 'cpu:0');
  const told: unknown[] = [];
  const tap = {
    submitted: (_: unknown, ticket: number, opcode: number) => void told.push(['submitted', ticket, opcode]),
    named: (_: unknown, ticket: number, __: number, kind: string, label: string | undefined) => void told.push([kind, ticket, label]),
    waits: () => undefined,
    waited: () => undefined,
    ending: async () => undefined,
  } satisfies LogTap;
  log.add(1, Opcode.LAUNCH);
  log.tell(tap);
  log.add(2, Opcode.LAUNCH);
  log.name(2, 'launch', 'blur', undefined);
  expect(isFast(log)).toBe(true);
  log.tell(undefined);
  log.add(3, Opcode.LAUNCH);
  log.name(3, 'launch', 'blur', undefined);
  expect(told).toEqual([
    ['submitted', 2, Opcode.LAUNCH],
    ['launch', 2, 'blur'],
  ]);
  expect([isFast(log), Object.hasOwn(log, 'add')]).toEqual([true, false]);
});
