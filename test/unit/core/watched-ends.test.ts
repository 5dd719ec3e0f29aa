// The values that subscribers of a stream or device get when it ends right after its work: all operations, then the end.
import { describe, expect, test, vi } from 'vitest';
import { CompileError, DeviceLostError } from '../../../src/core/base/errors.js';
import { type Hub, installObservableFactory } from '../../../src/core/base/observable.js';
import { f32 } from '../../../src/core/elements/dtype.js';
import type { DeviceArray } from '../../../src/core/api/array.js';
import type { Stream } from '../../../src/core/api/stream.js';
import { inout } from '../../../src/core/kernels/kernel.js';
import { operationsOf, type OperationSource } from '../../../src/core/operations/operation-iterator.js';
import type { Activity, Operation } from '../../../src/core/operations/operation.js';
import { Status } from '../../../src/protocol/protocol.gen.js';
import type { Subscription } from 'rxjs';
import { observableOf } from '../../../src/reactive/device-observables.js';
import { finish, type Fixture, fixture, settle, shiftKernel, turn } from './fake-channel.js';

installObservableFactory((source) => source as never);

/** The ids that a source emits, and how it ends. */
function watch(source: OperationSource): (number | string)[] {
  const seen: (number | string)[] = [];
  (source.operations$ as unknown as Hub<Operation>).add({
    next: ({ id }) => void seen.push(id),
    complete: () => void seen.push('complete'),
    error: (error) => void seen.push((error as Error).name),
  });
  return seen;
}

async function read(operations: AsyncIterable<Operation>): Promise<(number | string)[]> {
  const seen: (number | string)[] = [];
  try {
    for await (const { id } of operations) seen.push(id);
    seen.push('complete');
  } catch (error) {
    seen.push((error as Error).name);
  }
  return seen;
}

interface Watched extends Fixture {
  readonly stream: Stream;
  readonly x: DeviceArray;
  readonly ids: number[];
  /** The values of each kind of subscription. */
  ends(): Promise<unknown[]>;
}

/** Three operations of a stream with every kind of subscription, and an array made before. */
function watched(): Watched {
  const all = fixture();
  const { device } = all;
  const stream = device.createStream();
  const x = device.zeros(4);
  // They get the pending operations.
  finish(all);
  const observed = [watch(stream), watch(device)];
  const readers = [stream, operationsOf(stream, { every: 99 }), operationsOf(device, { every: 99 })].map(read);
  const ids = [1, 2, 3].map((value) => stream.fill(x, value).id);
  return { ...all, stream, x, ids, ends: async () => [...observed, ...(await Promise.all(readers))] };
}

/** The device finishes each record at once, so that every look finds it done and no wake is needed. */
async function closeQuietly({ channel }: Fixture, close: () => Promise<void>): Promise<void> {
  channel.completeAll();
  const submit = channel.submit.bind(channel);
  vi.spyOn(channel, 'submit').mockImplementation((bytes) => {
    const ticket = submit(bytes);
    channel.completeAll();
    return ticket;
  });
  await close();
}

/** The device finishes everything and rings, until the promise has settled. */
async function finishUntil(all: Fixture, end: Promise<void>): Promise<void> {
  const settled = end.then(() => true);
  do finish(all);
  while (!(await Promise.race([settled, turn().then(() => false)])));
}

describe('a close right after the work', () => {
  test('of the device emits all operations, for every kind of subscription', async () => {
    const all = watched();
    all.channel.completeAll();
    await closeQuietly(all, () => all.device.close());
    for (const seen of await all.ends()) expect(seen).toEqual([...all.ids, 'complete']);
  });

  test('of the device before the work is done emits it too', async () => {
    const all = watched();
    await finishUntil(all, all.device.close());
    for (const seen of await all.ends()) expect(seen).toEqual([...all.ids, 'complete']);
  });

  test('waits for bytes that are being copied into an ordinary array', async () => {
    const all = fixture();
    const { device, core } = all;
    const stream = device.createStream();
    const x = device.zeros(4);
    const seen = watch(stream);
    let land = (): void => undefined;
    vi.spyOn(core.hostCopies, 'copyToHost').mockImplementation((_from, _into, done) => (land = done));
    const copy = stream.copy(new Float32Array(4), x);
    const fill = stream.fill(x, 1);
    const closing = stream.close();
    for (let n = 0; n < 5; n++) {
      finish(all);
      await turn();
    }
    expect(seen).toEqual([]);
    land();
    await finishUntil(all, closing);
    expect(seen).toEqual([copy.id, fill.id, 'complete']);
  });

  test('waits for the reason of a failure that activity$ will emit', async () => {
    const all = fixture();
    const { device, channel } = all;
    const stream = device.createStream();
    const y = device.zeros(4);
    const phases: string[] = [];
    (stream.activity$ as unknown as Hub<Activity>).add({
      next: ({ phase, operation, error }) => void (phase !== 'submitted' && phases.push(`${operation.kind} ${phase} ${error?.name}`)),
      complete: () => void phases.push('complete'),
    });
    const kernel = shiftKernel(inout(f32));
    stream.launch(kernel, 4, { y });
    const { slot, last } = stream.timeline;
    const handle = channel.records.at(-1)!.view.getUint32(16, true);
    channel.fail(slot, { id: 1, first: last, last, status: Status.COMPILE, kernel: handle });
    stream.fill(y, 2);
    const closing = stream.close();
    for (let n = 0; n < 5; n++) {
      finish(all);
      await turn();
    }
    // The fill after it has finished, but is emitted later.
    expect(phases).toEqual([]);
    channel.builds.get(handle)!.reject(new CompileError('K702', 'It does not compile.', '', []));
    await finishUntil(all, closing);
    expect(phases).toEqual(['launch failed CompileError', 'fill finished undefined', 'complete']);
  });
});

describe('when the device is lost', () => {
  test('finished operations are emitted, then the error', async () => {
    const all = watched();
    const { channel, core, stream, ids } = all;
    channel.complete(stream.timeline.slot, stream.timeline.last - 1);
    core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
    for (const seen of await all.ends()) expect(seen).toEqual([...ids.slice(0, 2), 'DeviceLostError']);
  });

  test('a close that waits for its subscribers ends too', async () => {
    const all = fixture();
    const { channel, core, device } = all;
    const stream = device.createStream();
    const seen = watch(stream);
    (stream.activity$ as unknown as Hub<Activity>).add({ next: () => undefined });
    const y = device.zeros(4);
    stream.launch(shiftKernel(inout(f32)), 4, { y });
    const { slot, last } = stream.timeline;
    // Its reason never arrives.
    channel.fail(slot, { id: 1, first: last, last, status: Status.COMPILE, kernel: channel.records.at(-1)!.view.getUint32(16, true) });
    const closing = stream.close();
    for (let n = 0; n < 5; n++) {
      finish(all);
      await turn();
    }
    expect(seen).toEqual([]);
    core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
    await closing;
    expect(seen).toEqual(['DeviceLostError']);
  });
});

describe('a waiting reader', () => {
  function held(): Fixture & { readonly isHeld: () => boolean } {
    const all = fixture();
    let holds = 0;
    vi.spyOn(all.channel, 'keepAlive').mockImplementation(async (promise) => {
      holds++;
      return promise.finally(() => holds--);
    });
    return { ...all, isHeld: () => holds > 0 };
  }

  test.each(['stream', 'device'] as const)('for an operation of a %s holds the loop until it has come', async (of) => {
    const all = held();
    const { device, isHeld } = all;
    const stream = device.createStream();
    const x = stream.zeros(4);
    finish(all);
    const iterator = operationsOf(of === 'stream' ? stream : device, { every: 9 })[Symbol.asyncIterator]();
    const first = iterator.next();
    await settle(all.progress);
    // Nothing is pending, and only this thread could submit an operation to the stream.
    expect(isHeld()).toBe(false);
    stream.fill(x, 1);
    expect(isHeld()).toBe(true);
    stream.fill(x, 2);
    finish(all);
    expect((await first).done).toBe(false);
    await settle(all.progress);
    expect(isHeld()).toBe(false);
    // Pending operations do not keep the process alive without a waiter.
    stream.fill(x, 3);
    expect(isHeld()).toBe(false);
    await iterator.next();
    const third = iterator.next();
    expect(isHeld()).toBe(true);
    await iterator.return?.();
    await third;
    await turn();
    expect(isHeld()).toBe(false);
  });

  test.each(['operations$', 'activity$'] as const)('as %s keeps the process alive while it is subscribed to', async (name) => {
    for (const of of ['stream', 'device'] as const) {
      const all = held();
      const { device, isHeld } = all;
      const stream = device.createStream();
      stream.zeros(4);
      expect(isHeld()).toBe(false);
      const hub = { stream, device: device.context }[of].observation[name === 'operations$' ? 'operations' : 'activity'];
      const subscribe = (): Subscription => observableOf<unknown>(hub).subscribe();
      const subscription = subscribe();
      expect(isHeld()).toBe(true);
      subscription.unsubscribe();
      await turn();
      expect(isHeld()).toBe(false);
      subscribe();
      expect(isHeld()).toBe(true);
      finish(all);
      await settle(all.progress);
      expect(isHeld()).toBe(false);
    }
  });

  test('no longer keeps the process alive when the device is lost', async () => {
    const all = held();
    const { device, core, isHeld } = all;
    const next = device.stream[Symbol.asyncIterator]().next();
    device.zeros(4);
    expect(isHeld()).toBe(true);
    core.lose(new DeviceLostError('ERR_MILLRACE_LOST', 'Gone.', 'fault'));
    await expect(next).rejects.toThrow('Gone.');
    await turn();
    expect(isHeld()).toBe(false);
  });
});
