// An upload whose snapshot blocks the event loop for long: one warning for the process.
import { expect, test, vi } from 'vitest';
import { fixture } from './fake-channel.js';

test('a snapshot of more than 20 ms is reported once, with its size, its time and what to use instead', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  let now = 0;
  let stepMs = 19;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += stepMs));
  const { device } = fixture();
  const x = device.empty(4);
  const copy = (): unknown => device.stream.copy(x, new Float32Array(4));
  copy();
  expect(warned).not.toHaveBeenCalled();
  stepMs = 30;
  copy();
  copy();
  clock.mockRestore();
  expect(warned).toHaveBeenCalledTimes(1);
  const [message, kind] = warned.mock.calls[0] as unknown as [string, unknown];
  expect(message).toMatch(/^A copy from an ordinary typed array of 16 bytes blocked the event loop for \d+ ms: .*transfer: true.*pinned/);
  expect(kind).toEqual({ type: 'MillraceWarning', code: 'MILLRACE_SNAPSHOT' });
  warned.mockRestore();
});
