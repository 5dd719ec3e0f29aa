// Products of matrices by OpenBLAS on the CPU device. A small library, compiled here, stands for it, and writes a line for each call; where OpenBLAS
// is installed, the same products are made by it.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Device, type DeviceArray, openDevice, type OpenOptions, UnavailableError, UpstreamError } from 'millrace';
import { matmul } from 'millrace/ops';
import { rejectionOf } from '../support/wait.js';

const VARIABLE = 'MILLRACE_OPENBLAS';
const folder = mkdtempSync(path.join(os.tmpdir(), 'millrace-openblas-'));
const log = path.join(folder, 'log');
const FAKE = path.join(folder, 'libfake_openblas.so');
const SOURCE = path.resolve(import.meta.dirname, '../native/fake_openblas.cpp');

function compiled(file: string, config: string, ...flags: readonly string[]): void {
  execFileSync('g++', ['-std=c++17', '-O1', '-shared', '-fPIC', `-DCONFIG="${config}"`, ...flags, SOURCE, '-o', file]);
}

/** The calls of the small library. */
function calls(): string[] {
  return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
}

function opened(library: string | undefined, opts: OpenOptions = {}): Promise<Device> {
  if (library === undefined) delete process.env[VARIABLE];
  else process.env[VARIABLE] = library;
  return openDevice('cpu', opts);
}

const isInstalled = (spawnSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' }).stdout ?? '').includes('libopenblas.so.0 ');

let seed = 1;
/** Small whole numbers, whose products are the same in any order of the sums. */
function integers(device: Device, shape: readonly number[], dtype: 'f32' | 'f64'): DeviceArray<'f32' | 'f64'> {
  const next = (): number => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 16) % 9;
  const numbers = Array.from({ length: shape.reduce((product, extent) => product * extent, 1) }, () => next() - 4);
  return device.from(numbers, { shape, dtype });
}
const valuesOf = async (array: DeviceArray): Promise<number[]> => Array.from(await array.read(), Number);

/** The product of the last two axes, by plain loops; either operand may have one matrix for all. */
async function expectProduct(result: DeviceArray, a: DeviceArray, b: DeviceArray): Promise<void> {
  const [[rows, inner], columns, left, right] = [
    a.shape.slice(-2) as [number, number],
    b.shape.at(-1)!,
    await valuesOf(a),
    await valuesOf(b),
  ];
  const batches = Math.max(a.shape[2] === undefined ? 1 : a.shape[0]!, b.shape[2] === undefined ? 1 : b.shape[0]!);
  const wanted: number[] = [];
  for (let n = 0; n < batches; n++) {
    const [from, other] = [(n * rows * inner) % left.length, (n * inner * columns) % right.length];
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        let sum = 0;
        for (let k = 0; k < inner; k++) sum += left[from + row * inner + k]! * right[other + k * columns + column]!;
        wanted.push(sum);
      }
    }
  }
  const found = await valuesOf(result);
  expect([found.length, wanted.findIndex((value, at) => value !== found[at])]).toEqual([wanted.length, -1]);
}

beforeAll(() => {
  process.env['FAKE_OPENBLAS_LOG'] = log;
  compiled(FAKE, 'OpenBLAS 0.3.99 DYNAMIC_ARCH MAX_THREADS=64');
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each([
  ['a small library', FAKE],
  ['the one of the machine', '1'],
])('11 products by OpenBLAS, %s', (name, library) => {
  const isReal = library === '1';
  describe.skipIf(isReal && !isInstalled)(isReal && !isInstalled ? `${name}: libopenblas.so.0 is not installed` : '', () => {
    let device: Device;
    beforeAll(async () => {
      device = await opened(library);
    });
    afterAll(() => device.close());
    afterEach(() => rmSync(log, { force: true }));

    test('S1127 products of every layout and batch are the library’s', async () => {
      expect(device.info.libraries).toMatchObject([{ name: 'OpenBLAS', operations: ['matmul'] }]);
      if (!isReal) expect(device.info.libraries).toMatchObject([{ version: '0.3.99', path: FAKE }]);
      for (const [dtype, call] of [
        ['f32', 'sgemm'],
        ['f64', 'dgemm'],
      ] as const) {
        for (const [rows, inner, columns] of [
          [5, 7, 6],
          [40, 8500, 5],
          [300, 70, 130],
          [1, 3, 1],
          [17, 2, 1],
        ] as const) {
          using a = integers(device, [rows, inner], dtype);
          using b = integers(device, [inner, columns], dtype);
          using product = matmul(a, b);
          await expectProduct(product, a, b);
          using turned = matmul(b.transpose(), a.transpose());
          await expectProduct(turned.transpose(), a, b);
        }
        using a = integers(device, [3, 8, 6], dtype);
        using b = integers(device, [3, 6, 10], dtype);
        for (const [left, right] of [
          [a, b],
          [a, b.view(0)],
          [a.view(0), b],
          [a.transpose([0, 2, 1]).transpose([0, 2, 1]), b],
          [a.view(undefined, [1, 3]), b.view(undefined, undefined, [3, 7])],
        ] as const) {
          using product = matmul(left, right);
          await expectProduct(product, left, right);
        }
        using out = device.zeros([3, 8, 10], dtype);
        matmul(a, b, { out });
        await expectProduct(out, a, b);
        if (!isReal) expect(new Set(calls().map((line) => line.split(' ')[0]))).toEqual(new Set([call]));
        rmSync(log, { force: true });
      }
    });

    test('S1127 other products are those of kernels, and none without elements is multiplied', async () => {
      using a = integers(device, [8, 12], 'f32');
      using b = integers(device, [12, 8], 'f32');
      // Rows and columns with gaps.
      const [left, right] = [a.view([undefined, undefined, 2], [undefined, undefined, 2]), b.view([0, 6])];
      using product = matmul(left, right);
      await expectProduct(product, left, right);
      using half = device.ones([6, 6], 'f16');
      using halves = matmul(half, half, { dtype: 'f32' });
      expect(await valuesOf(halves)).toEqual(Array.from({ length: 36 }, () => 6));
      using none = matmul(a.view([0, 0]), b);
      expect(none.shape).toEqual([0, 8]);
      using zeros = matmul(a.view(undefined, [0, 0]), b.view([0, 0]));
      expect(await valuesOf(zeros)).toEqual(Array.from({ length: 64 }, () => 0));
      expect(calls()).toEqual([]);
    });

    test('S1127 NaN and what the result held before', async () => {
      using a = device.from(new Float32Array([Number.NaN, 0, 1, 2, 3, Infinity]), { shape: [2, 3] });
      using b = device.from(new Float32Array([0, 1, 1, 0, 2, 0]), { shape: [3, 2] });
      using out = device.full([2, 2], Number.NaN);
      matmul(a, b, { out });
      expect([...(await out.read())]).toEqual([Number.NaN, Number.NaN, Infinity, Number.NaN]);
    });

    test('S1127 in a capture it is a node, which each launch runs with its arrays; failures and hazards pass through it', async () => {
      using a = integers(device, [130, 20], 'f64');
      using b = integers(device, [20, 140], 'f64');
      using c = device.zeros([130, 140], 'f64');
      const stream = device.createStream();
      const graph = stream.capture((s) => void matmul(a, b, { stream: s, out: c }));
      for (let n = 0; n < 3; n++) {
        await stream.launch(graph).done;
        await expectProduct(c, a, b);
        device.stream.fill(a, n + 1);
      }
      await graph.close();
      // A failed operand: nothing is multiplied.
      rmSync(log, { force: true });
      device.stream.external({ writes: { a } }, () => {
        throw new Error('not today');
      });
      const failed = matmul(a, b, { stream });
      expect(await rejectionOf(failed.read())).toBeInstanceOf(UpstreamError);
      expect(calls()).toEqual([]);
      await stream.close();
    });
  });
});

describe('11 devices with OpenBLAS', () => {
  test('S1127 without the variable, kernels multiply; a library that does not work refuses the device', async () => {
    const plain = await opened(undefined);
    expect(plain.info.libraries).toEqual([]);
    await plain.close();
    const [wide, lone, partial] = ['wide', 'lone', 'partial'].map((name) => path.join(folder, `${name}.so`)) as [string, string, string];
    compiled(wide, 'OpenBLAS 0.3.99 USE64BITINT');
    compiled(lone, 'OpenBLAS 0.3.99 Zen SINGLE_THREADED');
    compiled(partial, 'OpenBLAS 0.3.99', '-DLACKS_DGEMM');
    for (const [library, reason] of [
      [path.join(folder, 'none.so'), 'none.so'],
      [wide, 'USE64BITINT'],
      [lone, 'built with threads'],
      [partial, 'cblas_dgemm'],
    ] as const) {
      const error = (await rejectionOf(opened(library))) as UnavailableError;
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error.message).toContain(reason);
      expect(error.help.join(' ')).toContain(VARIABLE);
    }
  });

  test('S1127 a device that is destroyed stops at the next tile', async () => {
    rmSync(log, { force: true });
    const device = await opened(FAKE, { threads: 2 });
    const [a, b] = [device.ones([1024, 256]), device.ones([256, 1024])];
    for (let n = 0; n < 100; n++) matmul(a, b)[Symbol.dispose]();
    while (calls().length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await device.destroy();
    // Each product has at least four tiles.
    expect(calls().length).toBeLessThan(100);
  });

  test('S1127 a device in a process of its own uses it there', async () => {
    rmSync(log, { force: true });
    await using device = await opened(FAKE, { isolation: 'process' });
    expect(device.info.libraries).toMatchObject([{ name: 'OpenBLAS', path: FAKE }]);
    using a = integers(device, [30, 40], 'f32');
    using product = matmul(a, a.transpose());
    await expectProduct(product, a, a.transpose());
    expect(calls()).toEqual(['sgemm 30 30 40']);
  });
});
