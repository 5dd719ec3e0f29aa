// The functions that other programs call. They take a stream, because the default device is the caller's.
import type { DeviceArray, Stream } from 'millrace';
import { softplus as kernel } from './kernels.js';

/** Where `openDevice(..., { images })` finds the kernels built ahead of time. */
export const images = new URL('../images/', import.meta.url);

/** log(1 + exp(x)) of each element, in a new array, which the caller disposes. */
export function softplus(x: DeviceArray<'f32'>, stream: Stream = x.device.stream): DeviceArray<'f32'> {
  const y = stream.empty(x.shape);
  try {
    if (x.length > 0) stream.launch(kernel, x.length, { x: x.reshape(x.length), y: y.reshape(x.length) });
    return y;
  } catch (error) {
    y[Symbol.dispose]();
    throw error;
  }
}
