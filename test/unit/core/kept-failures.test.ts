// Failures are kept while they can be read, and then freed, at a cost that does not grow with their number.
import { describe, expect, test } from 'vitest';
import type { MillraceError } from '../../../src/core/base/errors.js';
import type { Operation } from '../../../src/core/operations/operation.js';
import { FailedTickets } from '../../../src/core/timeline/failed-tickets.js';
import { Status, TimelineSlot } from '../../../src/protocol/protocol.gen.js';
import type { FailurePart, FailureRecord } from '../../../src/protocol/reports.js';
import { IS_LONG } from '../../support/long.js';
import { collectUntil } from '../../support/wait.js';
import { FakeChannel, type Fixture, fixture, settle, turn } from './fake-channel.js';

/** Like the native side: drops the failures that the owner has read, except the newest. */
class ForgettingChannel extends FakeChannel {
  #list: FailureRecord[] = [];
  #dropped = 0;

  override failures(_stream: number, from: number, count: number): FailurePart {
    this.#list.splice(0, from - this.#dropped);
    this.#dropped = Math.max(from, this.#dropped);
    return { records: this.#list.slice(0, count), rest: Math.max(0, this.#list.length - count) };
  }

  override fail(stream: number, failure: Partial<FailureRecord> & Pick<FailureRecord, 'id' | 'first' | 'last' | 'status'>): void {
    this.#list.push({ ...record(failure.id, failure.first), ...failure });
    Atomics.add(new Int32Array(this.timeline), (stream * TimelineSlot.BYTE_SIZE + TimelineSlot.FAILURES) / 4, 1);
  }
}

const record = (id: number, first: number, last = first): FailureRecord => ({
  id,
  first,
  last,
  status: Status.LAUNCH_FAILED,
  driverStatus: 0,
  note: '',
  cause: 0,
  lostDevice: 0,
  requestedBytes: 0,
  freeBytes: 0,
  requested: 0,
  limit: 0,
  kernel: 0,
});

describe('tickets that failed', () => {
  test('are found on the pages of operations that existed at the time', () => {
    const failed = new FailedTickets(0);
    const pages = [1, 63, 64, 200].map((ticket) => failed.pageOf(ticket)!);
    expect(pages[0]).toBe(pages[1]);
    expect(pages[2]).not.toBe(pages[1]);
    failed.add([record(1, 63), record(2, 2, 70)], 0);
    expect([63, 2, 61, 1].map((ticket) => pages[0]!.at(ticket)?.id)).toEqual([2, 2, 2, undefined]);
    expect([64, 70, 71].map((ticket) => pages[2]!.at(ticket)?.id)).toEqual([2, 2, undefined]);
    // The newest interval grows, also onto a page that was requested meanwhile.
    const later = failed.pageOf(130)!;
    expect(failed.add([record(2, 2, 200)], 0)).toHaveLength(1);
    expect([later.at(130), pages[2]!.at(127), pages[3]!.at(200)].map((found) => found?.id)).toEqual([2, 2, 2]);
    expect(failed.add([record(2, 2, 200)], 0)).toEqual([]);
    expect(failed.from).toBe(1);
  });

  test('are freed with their finished page, which operations keep alive', () => {
    const failed = new FailedTickets(0);
    const page = failed.pageOf(5)!;
    failed.add([record(1, 5)], 0);
    failed.settle(62);
    expect(failed.pageOf(5)).toBe(page);
    expect(failed.pageOf(63)).toBe(page);
    failed.settle(63);
    expect(failed.pageOf(5)).toBe(undefined);
    expect(page.at(5)?.id).toBe(1);
    expect(failed.pageOf(64)).not.toBe(undefined);
  });

  test('are found by an operation that is made after its failure was read', () => {
    const failed = new FailedTickets(0);
    failed.pageOf(5);
    failed.add([record(1, 3, 6), record(2, 70, 71)], 0);
    failed.settle(71);
    expect([6, 70, 71].map((ticket) => failed.pageOf(ticket)?.at(ticket)?.id)).toEqual([1, 2, 2]);
    failed.settle(127);
    expect(failed.pageOf(72)?.at(72)).toBe(undefined);
    failed.pageOf(128);
    failed.settle(128);
    expect([6, 71].map((ticket) => failed.pageOf(ticket))).toEqual([undefined, undefined]);
  });

  test('of earlier streams in the slot are not those of this one', () => {
    const failed = new FailedTickets(100);
    const page = failed.pageOf(101)!;
    expect(failed.add([record(1, 90, 100), record(2, 101)], 100).map(({ id }) => id)).toEqual([2]);
    expect(page.at(101)?.id).toBe(2);
    expect(page.at(100)).toBe(undefined);
  });
});

/** Fills that fail one by one, awaited by `ask`. */
async function fail(all: Fixture, count: number, ask: (operation: Operation) => void): Promise<void> {
  const { channel, device, progress } = all;
  const { stream } = device;
  const x = device.zeros(1);
  for (let n = 0; n < count; n++) {
    const operation = stream.fill(x, n);
    const { slot, last } = stream.timeline;
    channel.fail(slot, { id: 10 + last, first: last, last, status: Status.LAUNCH_FAILED, note: `number ${operation.id}` });
    ask(operation);
    channel.complete(slot, last);
    if (n % 100 === 99) {
      progress.wake();
      await turn();
    }
  }
  progress.wake();
  await turn();
}

test('an operation whose done is read much later rejects with its own failure', async () => {
  const all = fixture();
  all.core.errors.add({ next: () => undefined });
  const kept: Operation[] = [];
  await fail(all, 10_000, (operation) => operation.id % 1000 === 0 && kept.push(operation));
  expect(kept.length).toBeGreaterThan(5);
  for (const operation of kept) await expect(operation.done).rejects.toThrow(`number ${operation.id}.`);
  // Also after the stream was closed.
  const stream = all.device.createStream();
  const last = stream.fill(all.device.zeros(1), 1);
  const { slot, last: ticket } = stream.timeline;
  all.channel.fail(slot, { id: 5, first: ticket, last: ticket, status: Status.LAUNCH_FAILED, note: 'the last' });
  const closing = stream.close();
  for (let n = 0; n < 3; n++) {
    all.channel.completeAll();
    await settle(all.progress);
  }
  await closing;
  await expect(last.done).rejects.toThrow('the last');
});

test('failures without references are collected', async () => {
  const all = fixture(new ForgettingChannel());
  all.core.errors.add({ next: () => undefined });
  const { timeline } = all.device.stream;
  const pages: WeakRef<object>[] = [];
  await fail(all, 1000, () => {
    const page = timeline.failurePage(timeline.last)!;
    if (pages.at(-1)?.deref() !== page) pages.push(new WeakRef(page));
  });
  expect(pages.length).toBeGreaterThan(10);
  // The newest may still be read.
  const areGone = (): boolean => pages.slice(0, -1).every((page) => page.deref() === undefined);
  await collectUntil(areGone);
  expect(areGone()).toBe(true);
});

test('failures are reported in stream order, and a cause that was used again outlives later ones', async () => {
  const all = fixture();
  const { channel, core, device, progress } = all;
  const told: MillraceError[] = [];
  core.errors.add({ next: (error) => void told.push(error) });
  const x = device.zeros(1);
  const { slot } = device.stream.timeline;
  device.stream.fill(x, 0);
  const first = device.stream.timeline.last;
  channel.fail(slot, { id: 7, first, last: first, status: Status.LAUNCH_FAILED, note: 'the first' });
  channel.completeAll();
  progress.wake();
  for (let round = 0; round < 5; round++) {
    await fail(all, 2000, () => undefined);
    const reader = device.stream.fill(x, 1);
    const { last } = device.stream.timeline;
    channel.fail(slot, { id: 1_000_000 + round, first: last, last, status: Status.UPSTREAM, cause: 7 });
    channel.completeAll();
    await expect(reader.done).rejects.toMatchObject({ cause: { message: expect.stringContaining('the first') } });
  }
  const notes = told.map(({ message }) => /number (\d+)/.exec(message)?.[1]).filter((id) => id !== undefined);
  expect(notes).toEqual(notes.toSorted((a, b) => Number(a) - Number(b)));
});

const MANY = IS_LONG ? 200_000 : 60_000;
const PART = MANY / 10;

test(`of ${MANY} failures the last ${PART} cost at most twice what the first did, and leave no memory behind`, {
  timeout: 300_000,
}, async () => {
  const all = fixture(new ForgettingChannel());
  // Of the fake: neither what was submitted nor what failed is kept.
  const { channel } = all;
  channel.records.push = () => 0;
  let heard = 0;
  const part = async (): Promise<{ readonly cpuMs: number; readonly heap: number }> => {
    const before = process.cpuUsage();
    const asked: Promise<unknown>[] = [];
    await fail(all, PART, (operation) => asked.push(operation.done.catch(() => heard++)));
    await Promise.all(asked);
    const { user } = process.cpuUsage(before);
    gc!();
    return { cpuMs: user / 1000, heap: process.memoryUsage().heapUsed };
  };
  await part();
  const parts = [];
  for (let n = 1; n < MANY / PART; n++) parts.push(await part());
  const [first, last] = [parts[0]!, parts.at(-1)!];
  expect(heard).toBe(MANY);
  expect(last.cpuMs).toBeLessThan(2 * first.cpuMs);
  expect((last.heap - first.heap) / (MANY - 2 * PART)).toBeLessThan(40);
});
