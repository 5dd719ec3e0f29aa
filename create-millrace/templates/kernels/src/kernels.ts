// What runs on the device.
import { f32, input, kernel, output } from 'millrace';

export const softplus = kernel('softplus', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  const v = x[i]!;
  // The sum of both cases overflows for no v.
  y[i] = (v > 0 ? v : 0) + Math.log(1 + Math.exp(v > 0 ? -v : v));
});
