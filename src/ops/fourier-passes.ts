// One pass of Fourier transforms: transforms of one length of 2^a 3^b 5^c 7^d, each in the shared memory of a block, by Stockham's steps. The first step
// reads the operand and the last one writes the result, so what comes before and after (padding, factors, half spectra) costs no kernel.
import type { DeviceArray } from '../core/api/array.js';
import { DTYPES, scalarOf } from '../core/elements/dtype.js';
import { REGISTER_TYPE } from '../compiler/lowering/types.js';
import { Arguments } from './body.js';
import { castText, storeText } from './fused.js';
import type { Target } from './target.js';

/** The type in which transforms are computed. */
export type RealType = 'f32' | 'f64';

/** The longest transform of one pass, whose two copies fill 32 KiB of shared memory. */
export const MOST_POINTS: Readonly<Record<RealType, number>> = { f32: 2048, f64: 1024 };
/** Threads of a block: its transforms share them. */
const THREADS = 256;
const SHARED_BYTES = 32 * 1024;

/** How elements are read. An inverse transform is one that swaps the parts of what it reads, and of what it writes. */
export interface Reading {
  /** `hermitian`: the first half of a spectrum, whose other half is its mirror image. */
  readonly kind: 'complex' | 'real' | 'hermitian';
  readonly isSwapped?: boolean;
  /** Elements along the axis in memory; those beyond are 0. */
  readonly given: number;
  /** Elements of the whole transform. */
  readonly length: number;
  /** Complex numbers by which the elements are multiplied. */
  readonly factor?: DeviceArray | undefined;
}

/** How results are written. */
export interface Writing {
  /** `real`: without the imaginary parts. */
  readonly kind: 'complex' | 'real';
  /** Swaps the parts before the factor. */
  readonly isSwapped?: boolean;
  readonly factor?: DeviceArray | undefined;
  readonly scale?: number;
  /** Swaps the parts last. */
  readonly isSwappedAfter?: boolean;
  /** Results along the axis that are kept. */
  readonly kept: number;
}

/**
 * Arrays of `outer` x length x `inner` elements. The transforms of a pass are of `points` elements; with `middle` > 1 they are interleaved
 * along the axis: element j of transform m is at `j * step[0] + m * step[1]`, and result k at `k * to[0] + m * to[1]`.
 */
export interface Pass {
  readonly points: number;
  readonly outer: number;
  readonly middle: number;
  readonly inner: number;
  readonly from: readonly [step: number, ofMiddle: number];
  readonly to: readonly [step: number, ofMiddle: number];
  readonly reading: Reading;
  readonly writing: Writing;
  /** Powers of the first root of unity of `twiddled`, by which element j of transform m is multiplied j * m times. */
  readonly roots?: DeviceArray | undefined;
}

/** Roots of unity: the first `low` powers of the first one, then every `low`-th power. */
export const LOW_ROOTS = 1024;

/** The radices of a length, or undefined if it has other prime factors. */
export function radicesOf(length: number): readonly number[] | undefined {
  let rest = length;
  const found: number[] = [];
  for (const prime of [7, 5, 3]) for (; rest % prime === 0; rest /= prime) found.push(prime);
  let twos = Math.log2(rest);
  if (!Number.isInteger(twos)) return undefined;
  const large: number[] = [];
  // Two radices of 4 are as many steps as 8 and 2, and less work.
  for (; twos > 4 || twos === 3; twos -= 3) large.push(8);
  for (; twos > 1; twos -= 2) large.push(4);
  if (twos === 1) large.push(2);
  return [...large, ...found];
}

/** The parts of a complex number, as texts. */
type Complex = readonly [re: string, im: string];

/** Statements that compute the transform of a few values, and the names of its results. */
function butterfly(values: readonly Complex[], type: RealType, name: () => string): readonly [text: string, results: readonly Complex[]] {
  const radix = values.length;
  if (radix === 1) return ['', values];
  let text = '';
  const let2 = (re: string, im: string): Complex => {
    const own = name();
    text += `const ${own}r = ${re}; const ${own}i = ${im}; `;
    return [`${own}r`, `${own}i`];
  };
  const number = (value: number): string => `${type}(${value})`;
  if (radix % 2 === 0) {
    const halves = [0, 1].map((first) => {
      const [own, results] = butterfly(
        values.filter((_, at) => at % 2 === first),
        type,
        name,
      );
      text += own;
      return results;
    }) as [readonly Complex[], readonly Complex[]];
    const [sums, differences]: [Complex[], Complex[]] = [[], []];
    for (const [at, [ar, ai]] of halves[0].entries()) {
      const [br, bi] = halves[1][at]!;
      const root = number(Math.SQRT1_2);
      // The factor is 1, (1 - i) / sqrt 2, -i or -(1 + i) / sqrt 2.
      const [cr, ci] = [
        [br, bi],
        [`(${br} + ${bi}) * ${root}`, `(${bi} - ${br}) * ${root}`],
        [bi, `-${br}`],
        [`(${bi} - ${br}) * ${root}`, `-(${br} + ${bi}) * ${root}`],
      ][(at * 8) / radix]! as [string, string];
      const [dr, di] = let2(cr, ci);
      sums.push(let2(`${ar} + ${dr}`, `${ai} + ${di}`));
      differences.push(let2(`${ar} - ${dr}`, `${ai} - ${di}`));
    }
    return [text, [...sums, ...differences]];
  }
  const [first, ...rest] = values as [Complex, ...Complex[]];
  const half = (radix - 1) / 2;
  const pairs = Array.from({ length: half }, (_, at) => {
    const [[ar, ai], [br, bi]] = [rest[at]!, rest[radix - 2 - at]!];
    return [let2(`${ar} + ${br}`, `${ai} + ${bi}`), let2(`${ar} - ${br}`, `${ai} - ${bi}`)] as const;
  });
  const results: Complex[] = [];
  const part = (at: 0 | 1): string => [first, ...pairs.map(([sum]) => sum)].map((one) => one[at]).join(' + ');
  results[0] = let2(part(0), part(1));
  for (let k = 1; k <= half; k++) {
    const sum = (of: (angle: number) => number, which: 0 | 1, at: 0 | 1): string =>
      pairs.map((pair, m) => `${pair[which][at]} * ${number(of((2 * Math.PI * ((k * (m + 1)) % radix)) / radix))}`).join(' + ');
    const [cr, ci] = let2(`${first[0]} + ${sum(Math.cos, 0, 0)}`, `${first[1]} + ${sum(Math.cos, 0, 1)}`);
    const [sr, si] = let2(sum(Math.sin, 1, 0), sum(Math.sin, 1, 1));
    results[k] = let2(`${cr} + ${si}`, `${ci} - ${sr}`);
    results[radix - k] = let2(`${cr} - ${si}`, `${ci} + ${sr}`);
  }
  return [text, results];
}

/** Submits a pass. `table`: the roots of unity of the pass's length, unless it has one step. */
export function submitPass(
  x: DeviceArray,
  y: DeviceArray,
  pass: Pass,
  table: DeviceArray | undefined,
  type: RealType,
  target: Target,
): void {
  const { points, outer, middle, inner, from, to, reading, writing, roots } = pass;
  const radices = points === 1 ? [1] : radicesOf(points)!;
  const steps = radices.length;
  const own = Math.ceil(points / Math.max(...radices));
  const copies = Math.min(2, steps - 1);
  const fitting = copies === 0 ? THREADS : Math.floor(SHARED_BYTES / (copies * points * 2 * DTYPES[type].byteSize));
  const count = outer * middle * inner;
  const together = Math.max(1, Math.min(Math.floor(THREADS / own), fitting));
  const args = new Arguments();
  args.array('x', x);
  args.array('y', y, 'output');
  if (table !== undefined) args.array('table', table);
  if (roots !== undefined) args.array('roots', roots);
  if (reading.factor !== undefined) args.array('before', reading.factor);
  if (writing.factor !== undefined) args.array('after', writing.factor);
  args.numbers({ count, middle, inner, given: reading.given, all: reading.length, kept: writing.kept });
  args.numbers({ step: from[0], ofMiddle: from[1], toStep: to[0], toMiddle: to[1] });
  if (writing.scale !== undefined) args.give('scale', scalarOf(type), writing.scale);
  const { kind, isSwapped = false } = reading;
  const flags = [
    kind,
    isSwapped,
    reading.given < reading.length || points * middle > reading.length,
    writing.kind,
    writing.isSwapped,
    writing.isSwappedAfter,
    // What lies side by side.
    from[0] * inner === 1,
    to[0] * inner === 1,
    middle === 1,
    inner === 1,
    writing.kept < points * middle,
  ];
  const grid = Math.ceil(count / together);
  args.launch(
    target.recorder,
    'fft',
    [type, points, together, ...flags].join('|'),
    { grid, block: own * together },
    'threadIdx, blockIdx, shared, syncthreads',
    () => textOf(pass, radices, own, together, type, flags[2] === true, [x, y]),
  );
}

function textOf(
  { points, middle, inner, from, to, reading, writing, roots }: Pass,
  radices: readonly number[],
  own: number,
  together: number,
  type: RealType,
  isGuarded: boolean,
  [x, y]: readonly [DeviceArray, DeviceArray],
): string {
  const steps = radices.length;
  let names = 0;
  const name = (): string => `v${names++}`;
  const pitch = points + (together > 1 ? 1 : 0);
  const product = ([ar, ai]: Complex, [br, bi]: Complex): readonly [text: string, result: Complex] => {
    const id = name();
    return [`const ${id}r = ${ar} * ${br} - ${ai} * ${bi}; const ${id}i = ${ar} * ${bi} + ${ai} * ${br}; `, [`${id}r`, `${id}i`]];
  };
  const at = (array: string, place: string): Complex => [`${array}[2 * (${place})]`, `${array}[2 * (${place}) + 1]`];
  const cast = (text: string): string => castText(text, REGISTER_TYPE[x.dtype], type);

  /** Which transform a thread works on, and where that lies. */
  const placed = (isAlong: boolean): string => {
    const [t, b] = isAlong
      ? [`threadIdx.x % ${own}`, `idiv(threadIdx.x, ${own})`]
      : [`idiv(threadIdx.x, ${together})`, `threadIdx.x % ${together}`];
    const i = inner === 1 ? 'const n = number; const c = 0;' : 'const n = idiv(number, inner); const c = number % inner;';
    const m = middle === 1 ? 'const o = n; const m = 0;' : 'const o = idiv(n, middle); const m = n % middle;';
    return `const t = ${t}; const b = ${b}; const own = blockIdx.x * ${together} + b; const number = min(own, count - 1); ${i} ${m}`;
  };
  const readElement = (place: string): readonly [text: string, value: Complex] => {
    const id = name();
    let text = `const ${id}g = ${place} * step + m * ofMiddle; `;
    const address = (g: string): string => `(o * given + ${g}) * inner + c`;
    let value: Complex;
    const [re, im] = at('x', address(`${id}s`));
    const { kind } = reading;
    if (kind === 'hermitian') {
      text += `const ${id}m = ${id}g > all - ${id}g; const ${id}s = ${id}m ? all - ${id}g : ${id}g; let ${id}r = ${type}(0); let ${id}i = ${type}(0); `;
      // What mirrors itself is real.
      text += `if (${id}g < all && ${id}s < given) { ${id}r = ${cast(re)}; const ${id}p = ${cast(im)}; ${id}i = ${id}s === 0 || ${id}s + ${id}s === all ? ${type}(0) : ${id}m ? -${id}p : ${id}p; } `;
      value = [`${id}r`, `${id}i`];
    } else {
      const real = kind === 'real' ? `x[${address(`${id}s`)}]` : re;
      text += `const ${id}s = ${id}g; `;
      if (isGuarded) {
        text += `let ${id}r = ${type}(0); let ${id}i = ${type}(0); if (${id}g < given && ${id}g < all) { ${id}r = ${cast(real)}; ${kind === 'real' ? '' : `${id}i = ${cast(im)};`} } `;
      } else text += `const ${id}r = ${cast(real)}; const ${id}i = ${kind === 'real' ? `${type}(0)` : cast(im)}; `;
      value = [`${id}r`, `${id}i`];
    }
    if (reading.isSwapped === true) value = [value[1], value[0]];
    if (reading.factor !== undefined) {
      const [more, result] = product(value, at('before', `${id}g`));
      text += more;
      value = result;
    }
    if (roots !== undefined) {
      text += `const ${id}w = ${place} * m; `;
      const [low, root] = product(at('roots', `${id}w % ${LOW_ROOTS}`), at('roots', `${LOW_ROOTS} + idiv(${id}w, ${LOW_ROOTS})`));
      const [more, result] = product(value, root);
      text += low + more;
      value = result;
    }
    return [text, value];
  };
  const writeElement = (place: string, value: Complex): string => {
    const id = name();
    const text = `const ${id}h = (${place}) * toStep + m * toMiddle; `;
    let result = value;
    if (writing.isSwapped === true) result = [result[1], result[0]];
    let inside = '';
    if (writing.factor !== undefined) {
      const [more, multiplied] = product(result, at('after', `${id}h`));
      inside += more;
      result = multiplied;
    }
    if (writing.scale !== undefined) result = [`(${result[0]} * scale)`, `(${result[1]} * scale)`];
    if (writing.isSwappedAfter === true) result = [result[1], result[0]];
    const address = `(o * kept + ${id}h) * inner + c`;
    const [re, im] = at('y', address);
    inside +=
      writing.kind === 'real'
        ? storeText(`y[${address}]`, result[0], type, y.dtype)
        : storeText(re, result[0], type, y.dtype) + storeText(im, result[1], type, y.dtype);
    const test = writing.kept < points * middle ? `own < count && ${id}h < kept` : 'own < count';
    return `${text} if (${test}) { ${inside} } `;
  };

  const buffers = Array.from({ length: Math.min(2, steps - 1) }, (_, copy) => [`re${copy}`, `im${copy}`] as const);
  let text = buffers.flatMap((both) => both.map((each) => `const ${each} = shared('${type}', ${pitch * together});`)).join(' ');
  let before = 1;
  for (const [step, radix] of radices.entries()) {
    const groups = points / radix;
    const isFirst = step === 0;
    const isLast = step === steps - 1;
    const isAlong = isFirst ? from[0] * inner === 1 : isLast ? to[0] * inner === 1 : true;
    const source = buffers[(step + 1) % 2];
    const sink = buffers[step % 2];
    let body = before === 1 ? 'const k = 0;' : `const k = j % ${before};`;
    let values: Complex[] = [];
    for (let r = 0; r < radix; r++) {
      const place = r === 0 ? 'j' : `(j + ${r * groups})`;
      if (isFirst) {
        const [more, value] = readElement(place);
        body += more;
        values.push(value);
      } else {
        const id = name();
        body += `const ${id}r = ${source![0]}[b * ${pitch} + ${place}]; const ${id}i = ${source![1]}[b * ${pitch} + ${place}]; `;
        values.push([`${id}r`, `${id}i`]);
      }
    }
    if (before > 1) {
      values = values.map((value, r) => {
        if (r === 0) return value;
        const [more, result] = product(value, at('table', `k * ${(r * groups) / before}`));
        body += more;
        return result;
      });
    }
    const [more, results] = butterfly(values, type, name);
    body += more;
    body += `const first = (j - k) * ${radix} + k; `;
    for (const [r, result] of results.entries()) {
      const place = `first + ${r * before}`;
      body += isLast
        ? writeElement(place, result)
        : `${sink![0]}[b * ${pitch} + ${place}] = ${result[0]}; ${sink![1]}[b * ${pitch} + ${place}] = ${result[1]}; `;
    }
    // A block of its own, since names are used again.
    text += `${isFirst ? '' : 'syncthreads();'} { ${placed(isAlong)} for (let j = t; j < ${groups}; j += ${own}) { ${body} } }\n`;
    before *= radix;
  }
  return text;
}
