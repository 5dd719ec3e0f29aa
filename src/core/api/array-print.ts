// `array.toString`: the text of an array, as NumPy prints it. Of a large array only the edges are read.
// Thread: owner.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { type ArrayStyle, edgeOf, elementsOf, spansOf, textOf } from '../elements/array-text.js';
import type { DType, HostArray } from '../elements/dtype.js';
import { checkWaitOptions, type WaitOptions } from '../waits/wait.js';

/** How an array is printed: `numpy.set_printoptions`, `torch.set_printoptions`. Bad values are an ArgumentError. */
export interface PrintStyle {
  /** The most digits behind the point, 0 to 100; default 8. */
  readonly precision?: number;
  /** Of arrays with more elements, only the edges are shown; default 1000. Infinity shows all. */
  readonly threshold?: number;
  /** How many elements of each end of an axis are shown then, at least 1; default 3. */
  readonly edgeItems?: number;
  /** The characters of a line, at least 1; default 75. */
  readonly lineWidth?: number;
  /** Default false. True: numbers near 0 do not cause the form with exponents. */
  readonly suppress?: boolean;
}
/** Options of `toString` of a device array. */
export type PrintOptions = PrintStyle & WaitOptions;

const STYLE: readonly string[] = ['precision', 'threshold', 'edgeItems', 'lineWidth', 'suppress'];
const MOST_DIGITS = 100;
const SPELLINGS: readonly string[] = STYLE.map((name) => name.toLowerCase());

/** Whether an object names a style, in NumPy's spelling too. */
export function isPrintStyle(value: unknown): value is PrintStyle {
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain && Object.keys(value).some((name) => SPELLINGS.includes(name.toLowerCase()));
}

/** Throws ArgumentError for a bad option. `also`: the names of other options of the call. */
export function checkStyle(opts: PrintStyle = {}, also: readonly string[] = []): ArrayStyle {
  checkOptionNames(opts, [...STYLE, ...also]);
  const { precision = 8, threshold = 1000, edgeItems = 3, lineWidth = 75, suppress = false } = opts;
  checkInteger('precision', precision, 0, MOST_DIGITS);
  if (threshold !== Infinity) checkInteger('threshold', threshold, 0);
  checkInteger('edgeItems', edgeItems, 1);
  checkInteger('lineWidth', lineWidth, 1);
  if (typeof suppress !== 'boolean') throw badArgument('suppress', suppress, `The suppress (${show(suppress)}) is not a boolean.`);
  return { precision, threshold, edgeItems, lineWidth, suppress };
}

/** `read`: the elements of a part of the array, with a range for each axis. */
export async function printed(
  { dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] },
  opts: PrintOptions | undefined,
  read: (ranges: readonly (readonly [start: number, stop: number])[], wait: WaitOptions) => Promise<HostArray>,
): Promise<string> {
  const style = checkStyle(opts, ['signal', 'timeoutMs']);
  const { signal, timeoutMs } = checkWaitOptions(opts);
  const wait = { signal, timeoutMs } as WaitOptions;
  const edge = edgeOf(shape, style);
  const spans = shape.map((extent) => spansOf(extent, edge));
  const extents = spans.map((parts) => parts.reduce((sum, [start, stop]) => sum + stop - start, 0));
  const shown: (number | bigint | boolean)[] = [];
  const boxes = spans.reduce<(readonly [number, number])[][]>(
    (all, parts) => all.flatMap((box) => parts.map((part) => [...box, part])),
    [[]],
  );
  // All parts are read at the same time, so no write that is submitted later comes between them.
  await Promise.all(
    boxes.map(async (box) => {
      for (const [n, element] of elementsOf(dtype, await read(box, wait)).entries()) {
        let [rest, at, step] = [n, 0, 1];
        for (let axis = box.length - 1; axis >= 0; axis--) {
          const [start, stop] = box[axis] as readonly [number, number];
          at += step * ((rest % (stop - start)) + Math.min(start, edge));
          rest = Math.floor(rest / (stop - start));
          step *= extents[axis] as number;
        }
        shown[at] = element;
      }
    }),
  );
  return textOf(dtype, shape, shown, style);
}
