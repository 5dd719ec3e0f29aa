// Products of matrices by cuBLASLt: the fake library multiplies on the streams of the fake driver, whose log shows that it did.
import { readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { FAKE_CUBLASLT, FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ArgumentError, type Device, type DeviceArray, type DType, LaunchError, openDevice, UpstreamError } from 'millrace';
import { astype, generator, matmul, sort } from 'millrace/ops';
import { rejectionOf } from '../support/wait.js';

const log = path.join(os.tmpdir(), `millrace-libraries-${process.pid}.log`);
process.env['MILLRACE_FAKE_CUDA_LOG'] = log;
const FAILURE = 'MILLRACE_FAKE_CUBLASLT';

/** The calls of the library that were submitted to streams or captured, `best` or `any`. */
function products(): string[] {
  return [...readFileSync(log, 'utf8').matchAll(/cublasLtMatmul (\w+) stream=/g)].map(([, how]) => how as string);
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
    expect(device.info.libraries).toEqual([{ name: 'cuBLASLt', version: '12.8.4', path: FAKE_CUBLASLT, operations: ['matmul'] }]);
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
});
