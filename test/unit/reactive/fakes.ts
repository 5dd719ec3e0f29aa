// A device, streams and arrays that finish when the test says so: all that the reactive layer needs.
import type { Shape } from '../../../src/core/elements/shape.js';
import { realClock } from '../../../src/core/base/clock.js';
import type { Device } from '../../../src/core/api/device.js';
import type { DTypeLike, DType } from '../../../src/core/elements/dtype.js';

export interface FakeArray {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly length: number;
  readonly data: Float32Array;
  isDisposed: boolean;
  watch(): void;
  subarray(start: number, end: number): FakeArray;
  reshape(shape: Shape): FakeArray;
  [Symbol.dispose](): void;
}

export interface FakeStream {
  readonly label: string;
  isClosed: boolean;
  close(): Promise<void>;
}

export interface FakeDevice {
  readonly device: Device;
  readonly streams: FakeStream[];
  readonly arrays: FakeArray[];
  state: 'open' | 'lost';
}

function nameOf(dtype: DTypeLike<DType>): DType {
  return typeof dtype === 'string' ? dtype : dtype.dtype;
}

export function fakeDevice(): FakeDevice {
  const streams: FakeStream[] = [];
  const arrays: FakeArray[] = [];

  function makeArray(shape: Shape, dtype: DTypeLike<DType> = 'f32'): FakeArray {
    const sizes = typeof shape === 'number' ? [shape] : shape;
    const length = sizes.reduce((product, size) => product * size, 1);
    const array: FakeArray = {
      dtype: nameOf(dtype),
      shape: sizes,
      length,
      data: new Float32Array(length),
      isDisposed: false,
      subarray(start, end) {
        return { ...this, shape: [end - start], length: end - start, data: this.data.subarray(start, end) };
      },
      reshape(to) {
        return { ...this, shape: typeof to === 'number' ? [to] : to };
      },
      watch: () => undefined,
      [Symbol.dispose]: () => {
        array.isDisposed = true;
      },
    };
    arrays.push(array);
    return array;
  }

  function createStream({ label = 'stream' }: { readonly label?: string } = {}): FakeStream {
    const stream: FakeStream & Record<string, unknown> = {
      label,
      isClosed: false,
      device,
      core,
      allocate: makeArray,
      fill: () => ({ done: Promise.resolve() }),
      copy: (to: FakeArray, from: FakeArray | Float32Array) => {
        to.data.set('data' in from ? from.data : from);
        return { done: Promise.resolve() };
      },
      close: () => {
        stream.isClosed = true;
        return Promise.resolve();
      },
    };
    streams.push(stream);
    return stream;
  }

  // Of a device that is gone, lanes keep no memory.
  const core = { name: 'fake', clock: realClock, isGone: true, failures: { count: 0 } };
  const fake: FakeDevice = { device: undefined as never, streams, arrays, state: 'open' };
  const device = {
    get state() {
      return fake.state;
    },
    core,
    createStream,
    makePinned: makeArray,
  };
  return Object.assign(fake, { device: device as unknown as Device });
}

/** A promise with its handles, for stages that finish when the test says so. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Runs all pending microtasks and callbacks. */
export async function settleAll(): Promise<void> {
  // A run lets the event loop turn after a stage that kept it busy, as any stage may on a busy machine.
  for (let turns = 0; turns < 4; turns++) await new Promise(setImmediate);
}

/** 0, 1, 2, … and how the iterator ended. */
export function counter(end = Infinity): {
  readonly source: AsyncGenerator<number, void>;
  readonly seen: { pulled: number; isClosed: boolean };
} {
  const seen = { pulled: 0, isClosed: false };
  async function* count(): AsyncGenerator<number, void> {
    try {
      while (seen.pulled < end) yield seen.pulled++;
    } finally {
      seen.isClosed = true;
    }
  }
  return { source: count(), seen };
}
