// Products of matrices by cuBLASLt and Fourier transforms by cuFFT: fake libraries work on the streams of the fake driver, whose log shows that
// they did.
import { readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_CUBLASLT, FAKE_CUFFT, FAKE_NCCL, FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ArgumentError, type Device, type DeviceArray, type DType, LaunchError, openDevice, type RawStream, UpstreamError } from 'millrace';
import { astype, type FourierOptions, fft, generator, ifft, irfft, matmul, rfft, sort } from 'millrace/ops';
import { foreignOf } from '../support/foreign.js';
import { transformOf } from '../support/operations/transforms.js';
import { eventually, rejectionOf } from '../support/wait.js';

const log = path.join(os.tmpdir(), `millrace-libraries-${process.pid}.log`);
process.env['MILLRACE_FAKE_CUDA_LOG'] = log;
process.env['MILLRACE_CUFFT'] = FAKE_CUFFT;
const FAILURE = 'MILLRACE_FAKE_CUBLASLT';

/** The calls of the library that were submitted to streams or captured, `best` or `any`. */
function products(): string[] {
  return [...readFileSync(log, 'utf8').matchAll(/cublasLtMatmul (\w+) stream=/g)].map(([, how]) => how as string);
}

/** The transforms that the library was called for. */
function transforms(): number {
  return [...readFileSync(log, 'utf8').matchAll(/cufftExec stream=/g)].length;
}

/** The product of the last two axes, by plain loops; `b` may lack the axes before them. */
function productOf(
  a: readonly number[],
  b: readonly number[],
  [batches, rows, inner, columns]: readonly number[],
  isOne: boolean,
): number[] {
  const result: number[] = [];
  for (let n = 0; n < batches!; n++) {
    for (let row = 0; row < rows!; row++) {
      for (let column = 0; column < columns!; column++) {
        let sum = 0;
        for (let k = 0; k < inner!; k++) {
          sum += a[(n * rows! + row) * inner! + k]! * b[((isOne ? 0 : n) * inner! + k) * columns! + column]!;
        }
        result.push(sum);
      }
    }
  }
  return result;
}

describe.skipIf(FAKE_DRIVER === undefined)(`libraries${FAKE_DRIVER === undefined ? `: ${FAKE_DRIVER_MISSING}` : ''}`, () => {
  let device: Device;
  const numbers = generator(3);
  const integers = (shape: readonly number[], dtype: DType = 'f32'): DeviceArray => numbers.integers(-4, 5, shape, { device, dtype });
  const valuesOf = async (array: DeviceArray): Promise<number[]> => {
    using wide = astype(array, 'f64');
    return [...(await wide.read())];
  };

  beforeAll(async () => {
    device = await openDevice('cuda:0');
  });
  afterAll(async () => {
    await device.close();
    rmSync(log, { force: true });
  });

  test('S1125 device.info.libraries names what operations use', () => {
    expect(device.info.libraries).toEqual([
      { name: 'cuBLASLt', version: '12.8.4', path: FAKE_CUBLASLT, operations: ['matmul'] },
      { name: 'cuFFT', version: '11.3.3', path: FAKE_CUFFT, operations: ['fft', 'ifft', 'rfft', 'irfft'] },
      { name: 'NCCL', version: '2.27.3', path: FAKE_NCCL, operations: ['openCommunicator'] },
    ]);
  });

  test('S532 the driver keeps nothing of functions that were captured, whether they succeeded or not', async () => {
    const foreign = foreignOf(device);
    const count = (call: string): number =>
      readFileSync(log, 'utf8').split(`${call} `).length + readFileSync(log, 'utf8').split(`${call}\n`).length;
    const calls = ['cuGraphCreate', 'cuStreamEndCapture', 'cuGraphDestroy', 'cuStreamDestroy'] as const;
    const before = calls.map(count);
    await using stream = device.createStream();
    using x = stream.zeros(4, 'i32');
    const works: readonly ((raw: RawStream<'x'>) => void)[] = [
      (raw) => foreign.fill(raw, raw.pointers.x, 3, 4),
      (raw) => foreign.synchronize(raw),
      () => {
        throw new Error('not today');
      },
    ];
    for (const work of works) {
      const graph = stream.capture((captured) => void captured.external({ writes: { x } }, work));
      await stream.launch(graph).done.catch(() => undefined);
      await graph.close();
    }
    // Of the first, its graph and the list of its calls; of the last, that list.
    const made = (): number[] => calls.map((call, at) => count(call) - before[at]!);
    await eventually('all graphs are destroyed', () => made()[2] === 3);
    expect(made()).toEqual([1, 3, 3, 3]);
  });

  test('S1125 products of every type, layout and batch are the library’s', async () => {
    for (const dtype of ['f32', 'f64', 'f16', 'bf16'] as const) {
      using a = integers([3, 8, 4], dtype);
      using b = integers([3, 4, 6], dtype);
      using one = b.view(0);
      const before = products().length;
      const [left, right] = await Promise.all([valuesOf(a), valuesOf(b)]);
      const wanted = productOf(left, right, [3, 8, 4, 6], false);
      using c = matmul(a, b);
      expect([c.dtype, await valuesOf(c)]).toEqual([dtype, wanted]);
      // The same matrices, with columns in one line.
      using turned = matmul(b.transpose([0, 2, 1]), a.transpose([0, 2, 1]));
      expect(await valuesOf(turned.transpose([0, 2, 1]))).toEqual(wanted);
      using shared = matmul(a, one, { dtype: 'f32' });
      expect(await valuesOf(shared)).toEqual(productOf(left, right, [3, 8, 4, 6], true));
      // Each is captured twice when it is planned, and f64 into f32 is no product of the library.
      expect(products().length - before).toBe(dtype === 'f64' ? 6 : 9);
    }
  });

  test('S1125 what the library refuses is multiplied by a kernel', async () => {
    using a = integers([5, 7]);
    using b = integers([7, 9]);
    const wanted = productOf(await valuesOf(a), await valuesOf(b), [1, 5, 7, 9], true);
    for (const failure of ['heuristic:15', 'heuristic:14']) {
      process.env[FAILURE] = failure;
      const before = products().length;
      using c = matmul(a, b, { tf32: failure === 'heuristic:14' });
      expect(await valuesOf(c)).toEqual(wanted);
      expect(products().length).toBe(before);
      delete process.env[FAILURE];
    }
    // Rows with gaps in both directions, and integers, are asked of no library.
    using wide = integers([10, 14]);
    const every = wide.view([undefined, undefined, 2], [undefined, undefined, 2]);
    using d = matmul(every, b);
    expect(await valuesOf(d)).toEqual(productOf(await valuesOf(every), await valuesOf(b), [1, 5, 7, 9], true));
    using whole = matmul(integers([2, 3], 'i32'), integers([3, 2], 'i32'));
    expect(whole.dtype).toBe('i32');
    expect(() => matmul(a, b, { tf32: 1 as never })).toThrow(ArgumentError);
  });

  test('S1125 a call that fails is a LaunchError that names the library and its status', async () => {
    using a = integers([16, 16]);
    using good = matmul(a, a);
    await good.read();
    process.env[FAILURE] = 'matmul:13';
    const failed = matmul(a, a);
    const error = await rejectionOf(device.stream.record().done.then(() => failed.read()));
    delete process.env[FAILURE];
    expect(error).toBeInstanceOf(UpstreamError);
    expect((error as Error).cause).toBeInstanceOf(LaunchError);
    expect((error as Error).message).toContain('cuBLASLt answered CUBLAS_STATUS_EXECUTION_FAILED');
    using again = matmul(a, a);
    expect(await valuesOf(again)).toEqual(await valuesOf(good));
  });

  test('S1125 in a capture it is a node of the graph, also with arrays that each launch gives', async () => {
    using a = integers([6, 12]);
    using b = integers([12, 6]);
    using c = device.zeros([6, 6]);
    const stream = device.createStream();
    const graph = stream.capture((s) => {
      using product = matmul(a, b, { stream: s });
      sort(product, { stream: s, out: c });
    });
    for (let n = 0; n < 3; n++) {
      await stream.launch(graph).done;
      const product = productOf(await valuesOf(a), await valuesOf(b), [1, 6, 12, 6], true);
      const sorted = Array.from({ length: 6 }, (_, row) => product.slice(row * 6, row * 6 + 6).toSorted((p, q) => p - q)).flat();
      expect(await valuesOf(c)).toEqual(sorted);
      device.stream.fill(a, n + 1);
    }
    expect(products().at(-1)).toBe('best');
    await graph.close();
    await stream.close();
  });

  describe('transforms', () => {
    type Call = (x: DeviceArray, opts: FourierOptions) => DeviceArray;
    const FUNCTIONS = { fft, ifft, rfft, irfft } as const;
    /** The same by the definition. */
    const wantedOf = async (call: Call, x: DeviceArray, { axis = -1, length, norm }: FourierOptions): Promise<number[]> => {
      const name = (Object.keys(FUNCTIONS) as (keyof typeof FUNCTIONS)[]).find((each) => FUNCTIONS[each] === call)!;
      const values = await valuesOf(x);
      const [shape, parts] =
        call === rfft
          ? [x.shape, [values, values.map(() => 0)]]
          : [x.shape.slice(0, -1), [0, 1].map((part) => values.filter((_, n) => n % 2 === part))];
      const [re, im] = parts.map((part) => Float64Array.from(part)) as [Float64Array, Float64Array];
      const axes = [axis].flat().map((one) => (one < 0 ? one + shape.length : one));
      const own = axes.map((one, at) => (call === irfft && at === axes.length - 1 ? 2 * (shape[one]! - 1) : shape[one]!));
      const [now, scale] = transformOf(name, { shape, re, im }, axes, length === undefined ? own : [length].flat(), norm);
      return [...now.re].flatMap((value, n) => (call === irfft ? [value * scale] : [value * scale, now.im[n]! * scale]));
    };
    const expectNear = (found: readonly number[], wanted: readonly number[], dtype: DType): void => {
      expect(found.length).toBe(wanted.length);
      const most = Math.max(...wanted.map(Math.abs), 1);
      for (const [at, value] of wanted.entries())
        expect(Math.abs(found[at]! - value)).toBeLessThan(most * (dtype === 'f32' ? 1e-5 : 1e-13));
    };
    const CASES: readonly (readonly [name: string, call: Call, shape: readonly number[], opts: FourierOptions])[] = [
      ['fft', fft, [12, 2], {}],
      ['fft of rows', fft, [3, 7, 2], {}],
      ['fft of columns', fft, [6, 4, 2], { axis: 0 }],
      ['ifft', ifft, [3, 10, 2], {}],
      ['fft in two dimensions', fft, [2, 4, 6, 2], { axis: [-2, -1] }],
      ['ifft in three dimensions', ifft, [3, 4, 5, 2], { axis: [0, 1, 2], norm: 'ortho' }],
      ['rfft', rfft, [2, 9], {}],
      ['rfft in two dimensions', rfft, [5, 8], { axis: [0, 1] }],
      ['irfft', irfft, [2, 5, 2], {}],
      ['irfft of an odd length', irfft, [4, 2], { length: 7 }],
      ['irfft in two dimensions', irfft, [6, 5, 2], { axis: [0, 1] }],
    ];

    test.each(CASES)('S1126 %s is the library’s, whether its arrays are aligned or not', async (_name, call, shape, opts) => {
      for (const dtype of ['f32', 'f64'] as const) {
        const count = shape.reduce((product, extent) => product * extent, 1);
        using room = numbers.uniform(count + 1, { device, dtype });
        for (const from of [0, 1]) {
          const x = room.view([from, from + count]).reshape(shape);
          const before = transforms();
          const wanted = await wantedOf(call, x, opts);
          using y = call(x, opts);
          expectNear(await valuesOf(y), wanted, dtype);
          // It is captured once when it is planned, which both share.
          expect(transforms() - before).toBe(from === 0 ? 2 : 1);
          using large = device.zeros(y.length + 1, dtype);
          call(x, { ...opts, out: large.view([1, y.length + 1]).reshape(y.shape) });
          expectNear((await valuesOf(large)).slice(1), wanted, dtype);
          // The operand of a transform to real numbers is as before.
          expectNear(await wantedOf(call, x, opts), wanted, dtype);
        }
      }
    });

    test.each(CASES)('S1126 where the library refuses %s, a kernel computes it', async (name, call, shape, opts) => {
      // The kernels are those that the chapter about operations tests, in both types.
      for (const dtype of name === 'fft of rows' ? (['f32', 'f64'] as const) : (['f32'] as const)) {
        // Another length than above, which is planned already.
        const own = shape.map((extent, axis) => (axis === 0 && shape.length > 1 ? extent + 1 : extent));
        using x = numbers.uniform(call === irfft && shape.length === 2 ? shape : own, { device, dtype });
        process.env['MILLRACE_FAKE_CUFFT'] = 'plan:2';
        const before = transforms();
        using y = call(x, { ...opts, ...(opts.length !== undefined && { length: 6 }) });
        const found = await valuesOf(y);
        delete process.env['MILLRACE_FAKE_CUFFT'];
        expectNear(found, await wantedOf(call, x, { ...opts, ...(opts.length !== undefined && { length: 6 }) }), dtype);
        expect(transforms()).toBe(before);
      }
    });

    test('S1126 other types, padding and axes that are no batch are computed by the kernels of the device', async () => {
      const before = transforms();
      for (const [shape, dtype, opts] of [
        [[8, 2], 'i32', {}],
        [[8, 2], 'f32', { length: 9 }],
        [[2, 3, 4, 2], 'f32', { axis: 1 }],
      ] as const) {
        using x = integers(shape, dtype);
        using y = fft(x, opts);
        expectNear(await valuesOf(y), await wantedOf(fft, x, opts), 'f32');
      }
      expect(transforms()).toBe(before);
    });

    test('S1126 a failing call is a LaunchError, and the next one is right', async () => {
      using x = numbers.uniform([16, 2], { device });
      using good = fft(x);
      await good.read();
      process.env['MILLRACE_FAKE_CUFFT'] = 'exec:6';
      const failed = fft(x);
      const error = await rejectionOf(device.stream.record().done.then(() => failed.read()));
      delete process.env['MILLRACE_FAKE_CUFFT'];
      expect((error as Error).cause).toBeInstanceOf(LaunchError);
      expect((error as Error).message).toContain('cuFFT answered CUFFT_EXEC_FAILED');
      using again = fft(x);
      expect(await valuesOf(again)).toEqual(await valuesOf(good));
    });

    test('S1126 in a capture it is a node, also with arrays that each launch gives', async () => {
      using x = numbers.uniform([4, 6, 2], { device });
      using y = device.zeros([4, 6, 2]);
      const stream = device.createStream();
      const graph = stream.capture((s) => {
        using spectrum = fft(x, { stream: s });
        ifft(spectrum, { stream: s, out: y });
      });
      for (let n = 0; n < 3; n++) {
        await stream.launch(graph).done;
        expectNear(await valuesOf(y), await valuesOf(x), 'f32');
        device.stream.fill(x, n);
      }
      await graph.close();
      await stream.close();
    });
  });
});
