// A finalizer is for arrays that stay: those of small temporary arrays would cost more than the arrays.
import { expect, test, vi } from 'vitest';
import { fixture } from './fake-channel.js';

test('small arrays get a finalizer when they are no longer among those made last, large ones at once', async () => {
  const { device } = fixture();
  // Arrays of other tests are no longer among those made last.
  Array.from({ length: 64 }, () => device.empty(16)).forEach((array) => array[Symbol.dispose]());
  const register = vi.spyOn(FinalizationRegistry.prototype, 'register');
  const made = (body: () => void): number => {
    register.mockClear();
    body();
    return register.mock.calls.length;
  };
  try {
    expect(made(() => void Array.from({ length: 100 }, () => device.empty(16)[Symbol.dispose]()))).toBe(0);
    const kept = Array.from({ length: 64 }, () => device.empty(16));
    expect(made(() => kept.push(device.empty(16), device.empty(16)))).toBe(2);
    expect(made(() => kept.push(device.empty(2 ** 16)))).toBe(1);
    // Those that are left get one soon, too.
    register.mockClear();
    await vi.waitFor(() => expect(register.mock.calls.length).toBe(64), { timeout: 20_000 });
    expect(made(() => kept.forEach((array) => array[Symbol.dispose]()))).toBe(0);
  } finally {
    register.mockRestore();
  }
});
