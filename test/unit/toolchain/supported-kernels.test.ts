// The part of a source that devices can run: declarations that no device has any more.
import { expect, test } from 'vitest';
import { withoutRemoved, withSupportedKernels } from '../../../src/cuda-cpp/select/supported-kernels.js';
import { specOf } from './run-image.js';

const KERNEL = 'extern "C" __global__ void k(int* y) { y[0] = 1; }';

test.each([
  'texture<float, 1> t;',
  'static texture<float, 1>\n  t, u;',
  'surface<void, 2> t;',
  'texture<float> *t;',
  'texture<float> t[4];',
])('without %j, which no code names', (reference) => {
  const { source } = withoutRemoved(specOf(`${reference}\n${KERNEL}`, 'k'));
  expect(source.trim()).toBe(KERNEL);
  expect(source.split('\n').length).toBe(`${reference}\n${KERNEL}`.split('\n').length);
});

test.each(['texture<float> t[3;', 'texture<float> +?*;'])('a CompileError for %j, which is no declaration', (reference) => {
  expect(() => withoutRemoved(specOf(`${reference}\n${KERNEL}`, 'k'))).toThrow("declares a texture reference ('texture<...>')");
});

test('a kernel beside kernels for tensor cores builds without their header and namespace', () => {
  const tensor = '__global__ void tensor(half* a) { wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum; }';
  const given = `#include <mma.h>\nusing namespace nvcuda;\n${tensor}\n${KERNEL}`;
  const { source } = withSupportedKernels(specOf(given, 'k'));
  expect(source.trim()).toBe(KERNEL);
  expect(source.split('\n').length).toBe(4);
  expect(() => withSupportedKernels(specOf(given, 'tensor'))).toThrow('<mma.h>');
});
