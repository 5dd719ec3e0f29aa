// Convolutions of images: each block keeps a tile of the image and a piece of the kernel in shared memory.
import { badArgument, refuseSurplus, show } from '../core/base/arguments.js';
import type { DeviceArray } from '../core/api/array.js';
import { type DType, scalarOf } from '../core/elements/dtype.js';
import { lengthOf } from '../core/elements/shape.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { castText, onlyArrays, storeText } from './fused.js';
import { besideNumber, isFloat, promoted, type Promoted } from './promotion.js';
import { isWide, type Result, type TypeOf } from './ready.js';
import { copied } from './rows.js';
import { type OpOptions, targetOf, type Target } from './target.js';

/** Options of `convolve2d`. */
export interface ConvolutionOptions<D extends DType = DType> extends OpOptions<D> {
  /** Which results are kept: `full` (default) all, `same` those of the image's extents, `valid` those that no boundary takes part in. */
  readonly mode?: 'full' | 'same' | 'valid';
  /** What lies around the image: `fill` (default) `fillValue`, `wrap` the image again, `symm` its mirror image. */
  readonly boundary?: 'fill' | 'wrap' | 'symm';
  /** Default 0. */
  readonly fillValue?: number;
}

const MODES = ['full', 'same', 'valid'];
const BOUNDARIES = ['fill', 'wrap', 'symm'];
/** Results of a block. */
const WIDTH = 32;
const HEIGHT = 8;
/** The kernel is taken in pieces of at most this side. */
const PIECE = 16;
/** CUDA's limit of blocks along y and z. */
const MOST_BLOCKS = 65535;

function checkChoice(option: string, value: unknown, of: readonly string[]): void {
  if (typeof value === 'string' && of.includes(value)) return;
  throw badArgument(option, value, `The ${option} (${show(value)}) is none of '${of.join("', '")}'.`);
}

/**
 * The convolution of an image with a kernel of two dimensions: `scipy.signal.convolve2d`, `cupyx.scipy.signal.convolve2d`. The last two axes of `a`
 * are its rows and columns, and each image of the axes before them is convolved. Sums of f16 and bf16 are f32, others have the type of the result. The
 * work is the product of the sizes: for large kernels, multiply spectra (`rfft`). Throws ArgumentError for empty images and kernels, for a kernel that
 * exceeds the image in mode 'valid', for bool, and as every operation does.
 * @example const edges = convolve2d(image, sobel, { mode: 'same', boundary: 'symm' });
 */
export function convolve2d<A extends DeviceArray, B extends DeviceArray, const O extends ConvolutionOptions = Record<never, never>>(
  a: A,
  kernel: B,
  opts?: O,
): Result<O, Promoted<TypeOf<A>, TypeOf<B>>> {
  if (arguments.length > 3) refuseSurplus('convolve2d', arguments, 3);
  onlyArrays('convolve2d', [a, kernel]);
  const [image, weights] = [a, kernel] as readonly DeviceArray[] as readonly [DeviceArray, DeviceArray];
  const target = targetOf('convolve2d', opts, [image, weights], ['mode', 'boundary', 'fillValue']);
  const { mode = 'full', boundary = 'fill', fillValue = 0 } = (opts ?? {}) as ConvolutionOptions;
  checkChoice('mode', mode, MODES);
  checkChoice('boundary', boundary, BOUNDARIES);
  const own = promoted(image.dtype, weights.dtype);
  if (own === 'bool') throw badArgument('dtype', own, 'The operation convolve2d is not defined for elements of bool.');
  if (typeof fillValue !== 'number' || (!isFloat(own) && !Number.isSafeInteger(fillValue)))
    throw badArgument('fillValue', fillValue, `The fillValue (${show(fillValue)}) is no number of type ${own}.`, own);
  besideNumber(own, fillValue);
  const [rows, columns] = image.shape.slice(-2);
  const [high, wide] = weights.shape;
  if (columns === undefined || rows === undefined || rows * columns === 0)
    throw badArgument('a', image, `The image of convolve2d (${image.label}) has not two dimensions with elements.`, 2);
  if (weights.shape.length !== 2 || weights.length === 0)
    throw badArgument('kernel', weights, `The kernel of convolve2d (${weights.label}) has not two dimensions with elements.`, 2);
  const sizes = [
    [rows, high as number],
    [columns, wide as number],
  ] as const;
  if (mode === 'valid' && sizes.some(([extent, size]) => size > extent)) {
    const message = `The kernel of convolve2d (${weights.label}) exceeds the image (${image.label}): no result is valid.`;
    throw badArgument('kernel', weights, message, [rows, columns]);
  }
  const results = sizes.map(([extent, size]) => (mode === 'full' ? extent + size - 1 : mode === 'same' ? extent : extent - size + 1));
  const offsets = sizes.map(([, size]) => (mode === 'full' ? 0 : mode === 'same' ? (size - 1) >> 1 : size - 1));
  const shape = [...image.shape.slice(0, -2), ...results];
  const dtype = target.typeOf(own);
  return target.write(shape, dtype, [image, weights], (into) => {
    using flat = image.isContiguous ? undefined : copied(image, target);
    using small = weights.isContiguous ? undefined : copied(weights, target);
    submit(flat ?? image, small ?? weights, into, { own: promoted(own, dtype), boundary, fillValue, offsets }, target);
  }) as Result<O, Promoted<TypeOf<A>, TypeOf<B>>>;
}

interface Plan {
  readonly own: DType;
  readonly boundary: string;
  readonly fillValue: number;
  readonly offsets: readonly number[];
}

/** The place in the image of a place beside it. */
function within(boundary: string, place: string, extent: string): string {
  if (boundary === 'wrap') return `(${place} % ${extent} + ${extent}) % ${extent}`;
  const turned = `(${place} % (2 * ${extent}) + 2 * ${extent}) % (2 * ${extent})`;
  return boundary === 'symm' ? `min(${turned}, 2 * ${extent} - 1 - ${turned})` : place;
}

function submit(image: DeviceArray, kernel: DeviceArray, result: DeviceArray, plan: Plan, target: Target): void {
  const { own, boundary, fillValue, offsets } = plan;
  const [rows, columns] = image.shape.slice(-2) as [number, number];
  const [high, wide] = kernel.shape as readonly [number, number];
  const [outRows, outColumns] = result.shape.slice(-2) as [number, number];
  const batches = lengthOf(image.shape.slice(0, -2));
  const type = REGISTER_TYPE[own];
  const args = new Arguments();
  args.array('x', image);
  args.array('w', kernel);
  args.array('y', result, 'output');
  args.numbers({ rows, columns, high, wide, outRows, outColumns, batches, down: offsets[0]!, right: offsets[1]! });
  args.give('around', scalarOf(type as DType), isWide(type) ? BigInt(fillValue) : fillValue);
  const bands = Math.ceil(outRows / HEIGHT);
  const grid = [Math.ceil(outColumns / WIDTH), Math.min(bands, MOST_BLOCKS), Math.min(batches, MOST_BLOCKS)] as const;
  const load = (text: string, from: DeviceArray): string => castText(text, REGISTER_TYPE[from.dtype], type);
  const pitch = WIDTH + PIECE - 1;
  const inside = boundary === 'fill' ? 'r >= 0 && r < rows && c >= 0 && c < columns' : 'true';
  args.launch(
    target.recorder,
    'convolve2d',
    `${boundary}|${own}`,
    { grid, block: [WIDTH, HEIGHT] },
    'threadIdx, blockIdx, gridDim, shared, syncthreads',
    () => `
    const tile = shared('${type}', ${pitch * (HEIGHT + PIECE - 1)}); const piece = shared('${type}', ${PIECE * PIECE});
    const tx = threadIdx.x; const ty = threadIdx.y; const t = ty * ${WIDTH} + tx;
    const left = blockIdx.x * ${WIDTH}; const bands = idiv(outRows + ${HEIGHT - 1}, ${HEIGHT});
    for (let z = blockIdx.z; z < batches; z += gridDim.z) {
      for (let band = blockIdx.y; band < bands; band += gridDim.y) {
        const top = band * ${HEIGHT}; let sum = ${type}(0);
        for (let p0 = 0; p0 < high; p0 += ${PIECE}) {
          for (let q0 = 0; q0 < wide; q0 += ${PIECE}) {
            const ph = min(${PIECE}, high - p0); const pw = min(${PIECE}, wide - q0); const tw = ${WIDTH - 1} + pw;
            for (let e = t; e < ph * pw; e += ${WIDTH * HEIGHT}) {
              const p = idiv(e, pw); const q = e % pw; piece[p * ${PIECE} + q] = ${load('w[(p0 + p) * wide + q0 + q]', kernel)};
            }
            for (let e = t; e < (${HEIGHT - 1} + ph) * tw; e += ${WIDTH * HEIGHT}) {
              const a = idiv(e, tw); const b = e % tw;
              const r0 = top + down - p0 - ph + 1 + a; const c0 = left + right - q0 - pw + 1 + b;
              const r = ${within(boundary, 'r0', 'rows')}; const c = ${within(boundary, 'c0', 'columns')};
              let v = around; if (${inside}) v = ${load('x[(z * rows + r) * columns + c]', image)};
              tile[a * ${pitch} + b] = v;
            }
            syncthreads();
            for (let p = 0; p < ph; p++) {
              for (let q = 0; q < pw; q++) sum = sum + piece[p * ${PIECE} + q] * tile[(ty + ph - 1 - p) * ${pitch} + tx + pw - 1 - q];
            }
            syncthreads();
          }
        }
        const row = top + ty; const column = left + tx;
        if (row < outRows && column < outColumns) ${storeText('y[(z * outRows + row) * outColumns + column]', 'sum', type, result.dtype)}
      }
    }`,
  );
}
