// A service whose requests blur signals on two lanes, each with a stream of its own.
import { createLanes, type Device, f32, input, i32, kernel, type Lanes, output } from 'millrace';

export const blur = kernel('blur', { n: i32, x: input(f32), y: output(f32) }, ({ n, x, y }, { i }) => {
  let sum = 0;
  for (let k = -8; k <= 8; k++) {
    let at = i + k;
    if (at < 0) at = 0;
    if (at >= n) at = n - 1;
    sum += x[at]!;
  }
  y[i] = sum / 17;
});

export interface Signal {
  readonly values: Float32Array<ArrayBuffer>;
  readonly rounds: number;
}

export function createService(device: Device): Lanes<Signal, Float32Array> {
  return createLanes(device, { depth: 2, maxQueue: 1000 }, async ({ values, rounds }: Signal, lane) => {
    const n = values.length;
    if (rounds < 1) throw new RangeError(`The rounds (${rounds}) are not at least 1.`);
    let [x, y] = [lane.from(values), lane.empty([n])];
    for (let round = 0; round < rounds; round++) {
      lane.stream.launch(blur, n, { n, x, y });
      [x, y] = [y, x];
    }
    return x.read();
  });
}
