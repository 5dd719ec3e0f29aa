// Options that a call needs: the error says what is missing, which values it takes, and shows an example.
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '../../../src/core/base/errors.js';
import { batchFor } from '../../../src/reactive/batch-for.js';
import { createBatcher } from '../../../src/reactive/batcher.js';
import { createLanes } from '../../../src/reactive/lanes.js';
import { overlap, overlapMap } from '../../../src/reactive/overlap.js';
import { thrownBy } from '../../support/wait.js';
import { fakeDevice } from './fakes.js';

const { device } = fakeDevice();
const stage = (item: unknown): Promise<never> => Promise.resolve(item as never);
const lanes = (opts?: unknown): unknown => createLanes(device, opts as never, stage);
const batcher = (opts?: unknown): unknown => createBatcher(device, opts as never, stage);

describe('an option that is missing', () => {
  it.each([
    ['maxQueue', 'a whole number of at least 0', 'createLanes(device, { depth: 4, maxQueue: 100 }, stage)', () => lanes({})],
    ['maxItems', 'a whole number of at least 1', 'createBatcher(device, { maxItems: 64,', () => batcher({ maxQueue: 1, maxWaitMs: 1 })],
    ['maxWaitMs', 'milliseconds', 'createBatcher(device, { maxItems: 64,', () => batcher({ maxQueue: 1, maxItems: 1 })],
    ['maxQueue', 'at least maxItems', 'createBatcher(device, { maxItems: 64,', () => batcher({ maxItems: 1, maxWaitMs: 1 })],
    ['maxQueue', 'whole number', 'createBatcher(device, { maxItems: 64,', () => batcher({ targetLatencyMs: 5 })],
    ['maxItems', 'a whole number of at least 1', 'batchFor({ maxItems: 64, maxWaitMs: 2 })', () => batchFor({ maxWaitMs: 1 } as never)],
    ['maxWaitMs', 'milliseconds', 'batchFor({ maxItems: 64, maxWaitMs: 2 })', () => batchFor({ maxItems: 1 } as never)],
    ['onError.retry', 'Infinity', 'onError: { retry: 3,', () => overlap(device, [1], { onError: {} as never }, stage)],
    ['maxQueue', 'or Infinity', 'maxQueue: 100', () => overlap(device, NEVER, { overflow: 'buffer' }, stage)],
    ['overflow', "'drop'", "{ overflow: 'latest' }", () => overlap(device, NEVER as never, {}, stage)],
    ['overflow', "'drop'", "{ overflow: 'latest' }", () => overlapMap(device, {} as never, stage)],
  ])('%s (%s) is named, with its values and an example', (option, values, example, call) => {
    const error = thrownBy(call);
    expect(error).toBeInstanceOf(ArgumentError);
    expect(error).toMatchObject({ argument: option, value: undefined });
    const { message } = error as Error;
    expect(message).toContain(`The option ${option} is missing: `);
    expect(message).toContain(values);
    expect(message).toContain(example);
  });

  it.each([
    ['createLanes', 'createLanes(device, {', () => createLanes(device, stage as never, undefined as never)],
    ['createBatcher', 'createBatcher(device, {', () => createBatcher(device, stage as never, undefined as never)],
    ['overlapMap', "overlapMap(device, { overflow: 'latest' }, stage)", () => overlapMap(device, stage as never, undefined as never)],
    ['createLanes', 'createLanes(device, {', () => lanes()],
    ['batchFor', 'batchFor({', () => batchFor(undefined as never)],
  ])('%s without options shows them', (call, example, run) => {
    const error = thrownBy(run);
    expect(error).toMatchObject({ name: 'ArgumentError', argument: 'opts' });
    expect((error as Error).message).toContain(`The options of ${call}`);
    expect((error as Error).message).toContain(example);
  });

  it('a queue that holds no full batch is refused with both numbers', () => {
    expect(() => batcher({ maxItems: 8, maxWaitMs: 1, maxQueue: 7 })).toThrow('The maxQueue (7) is below maxItems (8)');
  });

  it('a controller in place of its signal is named', () => {
    expect(() => overlap(device, [1], { signal: new AbortController() as never }, stage)).toThrow('AbortSignal: pass its signal.');
  });

  it('other values of onError show a policy', () => {
    expect(() => overlap(device, [1], { onError: 3 as never }, stage)).toThrow('such as { retry: 3, delayMs: 100 }');
  });
});
