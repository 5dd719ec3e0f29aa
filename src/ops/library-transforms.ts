// Fourier transforms by a library of the device, cuFFT, where it is installed.
import type { DeviceArray } from '../core/api/array.js';
import { i32, scalarOf } from '../core/elements/dtype.js';
import { input, type Kernel, output, type Param } from '../core/kernels/kernel.js';
import { kernelOfText } from '../compiler/definitions/kernel.js';
import { Arguments } from './body.js';
import { plannedKernel, transformPlan } from './plans.js';
import type { Target } from './target.js';
import { halfOf, type Transform } from './transform.js';

const THREADS = 256;
/** Axes of one transform of the library. */
const MOST_AXES = 3;

/** By the transform and the places of its operands. */
const transforms: Map<string, Kernel> = new Map();

/** Whether a library computes the transform. Then it is submitted. */
export function submitByLibrary(x: DeviceArray, y: DeviceArray, transform: Transform, target: Target): boolean {
  const { kind, isInverse, lengths, given, outer, inner, scale, type } = transform;
  const { recorder } = target;
  const half = halfOf(lengths.at(-1)!);
  const isWhole = lengths.every((length, axis) => given[axis] === (kind === 'hermitian' && axis === lengths.length - 1 ? half : length));
  const isDirected = kind === 'complex' || isInverse === (kind === 'hermitian');
  if (x.dtype !== type || y.dtype !== type || !isWhole || !isDirected || lengths.length > MOST_AXES) return false;
  // The library counts batches along one axis.
  if ((outer !== 1 && inner !== 1) || x.length === 0 || !recorder.core.channel.hasTransformLibrary()) return false;
  const results = y.length / (kind === 'hermitian' ? 1 : 2);
  const key = [type, kind, isInverse, outer, inner, ...lengths].join();
  let kernel = transforms.get(key);
  if (kernel === undefined) {
    const plan = transformPlan({ type, kind, isInverse, lengths, outer, inner, operand: 0, result: 2 });
    if (plan === undefined) return false;
    transforms.set(key, (kernel = plannedKernel(directKernel(transform), plan)));
  }
  const args = {
    x: x.span[0],
    y: y.span[0],
    count: results,
    inner,
    ...Object.fromEntries(lengths.map((length, axis) => [`n${axis}`, length])),
  };
  recorder.launch(kernel, { grid: Math.ceil(results / THREADS), block: THREADS, label: 'fft' } as never, args as never);
  if (scale !== 1) submitScale(y, scale, target);
  return true;
}

function submitScale(y: DeviceArray, scale: number, target: Target): void {
  const args = new Arguments();
  args.array('y', y, 'inout');
  args.numbers({ count: y.length });
  args.give('scale', scalarOf(y.dtype), scale);
  const shape = { grid: Math.ceil(y.length / THREADS), block: THREADS };
  args.launch(target.recorder, 'fft', 'scale', shape, 'threadIdx, blockIdx', () => {
    return `const at = blockIdx.x * ${THREADS} + threadIdx.x; if (at < count) y[at] = y[at] * scale;`;
  });
}

/**
 * The transform by its definition, each result by a thread of its own. It runs where the library is installed and refuses the transform, for
 * example for want of memory.
 */
function directKernel({ kind, isInverse, lengths, type }: Transform): Kernel {
  const rank = lengths.length;
  const axes = [...lengths.keys()];
  const last = rank - 1;
  const params: Record<string, Param> = { x: input(scalarOf(type)), y: output(scalarOf(type)), count: i32, inner: i32 };
  for (const axis of axes) params[`n${axis}`] = i32;
  const half = `(idiv(n${last}, 2) + 1)`;
  const extents = (isHalved: boolean): string[] => axes.map((axis) => (isHalved && axis === last ? half : `n${axis}`));
  const address = (extent: readonly string[], index: (axis: number) => string): string =>
    `${axes.reduce((text, axis) => `(${text} * ${extent[axis]!} + ${index(axis)})`, 'o')} * inner + c`;
  const from = extents(kind === 'hermitian');
  const to = extents(kind === 'real');
  const places = axes
    .toReversed()
    .map((axis) => `const k${axis} = rest % ${to[axis]!}; rest = idiv(rest, ${to[axis]!});`)
    .join(' ');
  const loops = axes.map((axis) => `for (let j${axis} = 0; j${axis} < n${axis}; j${axis}++) `).join('');
  const turns = axes.map((axis) => `f64(j${axis}) * f64(k${axis}) % f64(n${axis}) / f64(n${axis})`).join(' + ');
  const plain = address(from, (axis) => `j${axis}`);
  const mirrored = address(from, (axis) => `(n${axis} - j${axis}) % n${axis}`);
  const read = {
    complex: `const s = ${plain}; const re = f64(x[2 * s]); const im = f64(x[2 * s + 1]);`,
    real: `const re = f64(x[${plain}]); const im = f64(0);`,
    hermitian: `const isMirrored = j${last} + j${last} > n${last}; const s = isMirrored ? ${mirrored} : ${plain};
      const re = f64(x[2 * s]); const part = f64(x[2 * s + 1]); const im = isMirrored ? -part : part;`,
  }[kind];
  const write = kind === 'hermitian' ? `y[at] = ${type}(sumRe);` : `y[2 * at] = ${type}(sumRe); y[2 * at + 1] = ${type}(sumIm);`;
  const text = `({ ${Object.keys(params).join(', ')} }, { threadIdx, blockIdx, idiv, f32, f64 }) => {
    const at = blockIdx.x * ${THREADS} + threadIdx.x;
    if (at >= count) return;
    const c = at % inner; let rest = idiv(at, inner); ${places} const o = rest;
    let sumRe = f64(0); let sumIm = f64(0);
    ${loops} {
      ${read}
      const angle = f64(${(isInverse ? 2 : -2) * Math.PI}) * (${turns});
      const wr = Math.cos(angle); const wi = Math.sin(angle);
      sumRe = sumRe + re * wr - im * wi; sumIm = sumIm + re * wi + im * wr;
    }
    ${write}
  }`;
  return kernelOfText('fft', params, text, new Map(), { file: undefined, line: 0 });
}
