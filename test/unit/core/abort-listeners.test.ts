// One listener of a signal, however many waits use it, and none when no wait does.
import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { fixture, turn } from './fake-channel.js';

const WAITS = 20_000;
/** A limit of the thread's CPU time, for a slow machine. With a listener per wait it took several times as long. */
const GENEROUS_MS = 20_000;

const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

describe('waits with one signal', { timeout: 4 * GENEROUS_MS }, () => {
  test('have one listener, and none after the waits', async () => {
    const { channel, device } = fixture();
    const { stream } = device;
    const operation = stream.fill(device.zeros(1), 1);
    const { signal } = new AbortController();
    const warned = vi.spyOn(process, 'emitWarning');
    const sinceMs = performance.now();
    const waits = Array.from({ length: WAITS }, () => operation.synchronize({ signal }));
    expect(listenersOf(signal)).toBe(1);
    channel.completeAll();
    await Promise.all(waits);
    expect(performance.now() - sinceMs).toBeLessThan(GENEROUS_MS);
    expect(listenersOf(signal)).toBe(0);
    await turn();
    const names = warned.mock.calls.map(([warning]) => (warning as unknown as Error).name);
    expect(names).not.toContain('MaxListenersExceededWarning');
    warned.mockRestore();
  });

  test('are all given up when it aborts', async () => {
    const { device, holds } = fixture();
    const operation = device.stream.fill(device.zeros(1), 1);
    const aborter = new AbortController();
    const waits = Array.from({ length: WAITS }, () => operation.synchronize({ signal: aborter.signal }));
    const sinceMs = performance.now();
    aborter.abort(new Error('enough'));
    const settled = await Promise.allSettled(waits);
    expect(performance.now() - sinceMs).toBeLessThan(GENEROUS_MS);
    expect(settled.every((one) => one.status === 'rejected' && one.reason.code === 'ABORT_ERR')).toBe(true);
    expect(listenersOf(aborter.signal)).toBe(0);
    expect(holds).toEqual([true, false]);
  });

  test('of host functions share it too, also if they are awaited', async () => {
    const { channel, progress, device } = fixture();
    const aborter = new AbortController();
    const { signal } = aborter;
    const operations = [1, 2, 3].map(() => device.stream.host(() => undefined, { signal }));
    const waits = operations.map((operation) => operation.synchronize({ signal }));
    expect(listenersOf(signal)).toBe(1);
    channel.completeAll();
    progress.wake();
    await Promise.all(waits);
    expect(listenersOf(signal)).toBe(0);
    const given = device.stream.host(() => undefined, { signal }).synchronize({ signal: new AbortController().signal });
    aborter.abort();
    await expect(given).rejects.toMatchObject({ code: 'ABORT_ERR' });
    expect(listenersOf(signal)).toBe(0);
  });

  test('end although another listener stops the propagation of the event', async () => {
    const { device } = fixture();
    const aborter = new AbortController();
    aborter.signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
    device.zeros(1);
    const wait = device.stream.synchronize({ signal: aborter.signal });
    aborter.abort();
    await expect(wait).rejects.toMatchObject({ code: 'ABORT_ERR' });
  });

  test('that begin during the abort event are given up, and later ones at once', async () => {
    const { device } = fixture();
    device.zeros(1);
    const aborter = new AbortController();
    const { signal } = aborter;
    const first = device.stream.synchronize({ signal });
    const waits = [first];
    signal.addEventListener('abort', () => waits.push(device.stream.synchronize({ signal })));
    aborter.abort();
    waits.push(device.stream.synchronize({ signal }));
    for (const settled of await Promise.allSettled(waits)) expect(settled).toMatchObject({ reason: { code: 'ABORT_ERR' } });
    expect(waits).toHaveLength(3);
  });
});

describe('a value that is not a signal', () => {
  test.each([null, 0, '', 'abort', {}, { aborted: false }, new EventTarget()])('%o is refused by name', async (signal) => {
    const { device } = fixture();
    const bad = { signal: signal as never };
    await expect(device.stream.synchronize(bad)).rejects.toMatchObject({ name: 'ArgumentError', argument: 'signal' });
    expect(() => device.stream.host(() => undefined, bad)).toThrow(/The option signal \(.*\) is not an AbortSignal/);
    expect(() => device.stream.hold(async () => undefined, { timeoutMs: 1, ...bad })).toThrow(/AbortSignal/);
  });

  test('a signal of another implementation is accepted', async () => {
    const { device } = fixture();
    device.zeros(1);
    const foreign = Object.assign(new EventTarget(), { aborted: false, reason: new Error('theirs') });
    const wait = device.stream.synchronize({ signal: foreign as unknown as AbortSignal });
    foreign.dispatchEvent(new Event('abort'));
    await expect(wait).rejects.toMatchObject({ code: 'ABORT_ERR', cause: foreign.reason });
  });
});
