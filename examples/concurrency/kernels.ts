// Kernels that several of these programs launch.
import { f32, i32, inout, input, kernel, output } from 'millrace';

/** y = a x + y */
export const saxpy = kernel('saxpy', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => {
  y[i] = a * x[i]! + y[i]!;
});

export const addTo = kernel('add_to', { x: inout(f32), value: f32 }, ({ x, value }, { i }) => {
  x[i] = x[i]! + value;
});

export const square = kernel('square', { x: input(f32), y: output(f32) }, ({ x, y }, { i }) => {
  y[i] = x[i]! * x[i]!;
});

/** Busy for about as long as `steps` says; leaves 1 behind. */
export const spin = kernel('spin', { x: inout(f32), steps: i32 }, ({ x, steps }, { i }) => {
  let value = 0;
  for (let n = 0; n < steps; n++) value = value * 0.5 + 1;
  x[i] = value > 0 ? 1 : 0;
});
