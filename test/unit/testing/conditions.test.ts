// Conditions on the device of a test: bodies run as the values say, and a condition takes the time of its longest body.
import { describe, expect, test } from 'vitest';
import { i32, inout, kernel, LaunchError } from '../../../src/index.js';
import { createTestClock, createTestDevice, testKernel } from '../../../src/testing/index.js';

const countDown = kernel('count_down', { left: inout(i32) }, ({ left }) => {
  left[0] = left[0]! - 1;
});
const fails = kernel('fails', { left: inout(i32) }, ({ left }) => {
  left[0] = 0;
});

function open() {
  const clock = createTestClock();
  const kernels = [
    testKernel(countDown, { ms: 4, run: ({ left }) => void left[0]!-- }),
    testKernel(fails, {
      ms: 1,
      run: () => {
        throw new Error('of the kernel');
      },
    }),
  ];
  return { clock, device: createTestDevice({ clock, kernels }) };
}

describe('conditions on a test device', () => {
  test('a loop, an if in it and a switch', async () => {
    const { clock, device } = open();
    const { stream } = device;
    const [left, even, index, x] = [device.full(1, 5, 'i32'), device.ones(1, 'i32'), device.full(1, 7, 'i32'), device.zeros(3, 'i32')];
    const graph = stream.capture((s) => {
      s.captureWhile(left, (body) => {
        body.launch(countDown, 1, { left });
        body.captureIf(
          even,
          (then) => {
            then.fill(even, 0);
            then.fill(x.subarray(0, 1), 1);
          },
          (other) => void other.fill(x.subarray(1, 2), 2),
        );
      });
      s.captureSwitch(index, [(body) => void body.fill(x, 9)]);
      s.captureSwitch(left, [(body) => void body.fill(x.subarray(2), 3)]);
    });
    const launched = stream.launch(graph);
    const values = x.read();
    await clock.advance(3);
    expect(launched.isComplete).toBe(false);
    await clock.advance(1);
    await launched.done;
    expect([...(await values)]).toEqual([1, 2, 3]);
  });

  test('a failure in a body is that of the launch, and the next one runs', async () => {
    const { clock, device } = open();
    const { stream } = device;
    const [condition, left] = [device.ones(1, 'i32'), device.zeros(1, 'i32')];
    const failed = stream.captureIf(condition, (body) => void body.launch(fails, 1, { left })).done.catch((error: unknown) => error);
    await clock.advance(10);
    expect(await failed).toBeInstanceOf(LaunchError);
    stream.fill(left, 3);
    const ran = stream.captureWhile(left, (body) => void body.launch(countDown, 1, { left }));
    const values = left.read();
    await clock.advance(10);
    await ran.done;
    expect([...(await values)]).toEqual([0]);
  });
});
