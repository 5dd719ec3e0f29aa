// The warning about a launch that gets the same bytes twice comes once in a process, so it has a process of its own.
import { expect, test, vi } from 'vitest';
import { f32, input, kernel, openDevice, output } from 'millrace';

const next = kernel('next', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! + 1;
});

test('a launch that reads and writes the same bytes warns once, and names both parameters', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const device = await openDevice('cpu');
  const { stream } = device;
  using x = stream.zeros(8);
  stream.launch(next, 4, { x: x.subarray(0, 4), y: x.subarray(4, 8) });
  expect(warned).not.toHaveBeenCalled();
  for (let n = 0; n < 3; n++) stream.launch(next, 4, { x: x.subarray(0, 4), y: x.subarray(3, 7) });
  expect(warned).toHaveBeenCalledTimes(1);
  const [message, options] = warned.mock.calls[0] as unknown as [string, object];
  expect(options).toEqual({ type: 'MillraceWarning', code: 'MILLRACE_SAME_BYTES' });
  expect(message).toMatch(
    /^The launch next on stream default of device cpu:0 gets the same bytes of array f32\[8\] for its parameters x and y/,
  );
  warned.mockRestore();
  await device.close();
});
