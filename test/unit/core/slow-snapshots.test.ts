// An upload whose snapshot blocks the event loop for long: one warning for the process.
import { expect, test, vi } from 'vitest';
import { fixture } from './fake-channel.js';

vi.mock('../../../src/core/base/timers.js', () => import('../../support/global-timers.js'));

test('a snapshot of at least 16 MiB and more than 20 ms is reported once, with its size, its time and what to use instead', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  let now = 0;
  let stepMs = 19;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += stepMs));
  const { device } = fixture();
  const x = device.empty(2 ** 22);
  const copy = (elements = 2 ** 22): unknown => device.stream.copy(x.subarray(0, elements), new Float32Array(elements));
  copy();
  expect(warned).not.toHaveBeenCalled();
  stepMs = 30;
  // A small one is slow only if its thread did not run.
  copy(2 ** 22 - 1);
  expect(warned).not.toHaveBeenCalled();
  copy();
  copy();
  clock.mockRestore();
  expect(warned).toHaveBeenCalledTimes(1);
  const [message, kind] = warned.mock.calls[0] as unknown as [string, unknown];
  expect(message).toMatch(
    /^A copy from an ordinary typed array of 16777216 bytes blocked the event loop for \d+ ms: .*transfer: true.*pinned/,
  );
  expect(kind).toEqual({ type: 'MillraceWarning', code: 'MILLRACE_SNAPSHOT' });
  warned.mockRestore();
});
