// A lane: one of the N slots of `overlap`, with a stream and arrays of its own.
//
// The arrays belong to the lane and stay with it from item to item: asking for the same key again costs nothing while
// the memory is large enough. They are freed when the run ends, in stream order, so the device may still be reading them.
// No result of a stage may be such memory, since the lane's next item writes to it.
//
// Thread: owner.
import type { Shape } from '../core/elements/shape.js';
import { DeviceArray } from '../core/api/array.js';
import type { Device } from '../core/api/device.js';
import { ArgumentError } from '../core/base/errors.js';
import type { DType, DTypeLike } from '../core/elements/dtype.js';
import { PinnedArray } from '../core/api/pinned.js';

import type { Stream } from '../core/api/stream.js';

/**
 * One of the N slots of `overlap`, with a stream and memory of its own. Array contents are unspecified at the start of an item. The
 * arrays are for use inside the stage: a stage whose result is such an array, or an object or array that holds one, fails with an
 * ArgumentError. Return what `read` or `detach` gives instead.
 */
export interface Lane {
  /** From 0 to one less than the run's `depth`. */
  readonly index: number;
  /** The device that was passed to `overlap`. */
  readonly device: Device;
  /** The lane's stream: work of one item goes here, in order. Two lanes have the same where `streams` are fewer than lanes. */
  readonly stream: Stream;
  /** Aborts when the run ends before this item has. */
  readonly signal: AbortSignal;
  /**
   * The lane's device array of that name, f32 unless `dtype` is given; contents unspecified. Its memory grows to the largest shape
   * requested; growing disposes the array returned for the key before. One that the stage disposed is allocated again. Throws as
   * `stream.empty` does.
   */
  array(key: string, shape: Shape): DeviceArray<'f32'>;
  array<D extends DType>(key: string, shape: Shape, dtype: DTypeLike<D>): DeviceArray<D>;
  /** The same in page-locked memory. A request for another shape disposes the previous array. Throws as `device.pinned` does. */
  pinned(key: string, shape: Shape): PinnedArray<'f32'>;
  pinned<D extends DType>(key: string, shape: Shape, dtype: DTypeLike<D>): PinnedArray<D>;
  /**
   * Takes an array out of the lane, so that the stage can return it; the receiver disposes it. The result is a copy if the array was a
   * view of larger memory. Throws ArgumentError for an array that is not the lane's, or no longer.
   */
  detach<A extends DeviceArray | PinnedArray>(array: A): A;
}

/** A key's device memory, and the array of the shape asked for last: the memory itself or a view of its front. */
interface Shelf {
  readonly memory: DeviceArray;
  readonly array: DeviceArray;
}

function hasShape(array: DeviceArray | PinnedArray, shape: readonly number[]): boolean {
  return array.shape.length === shape.length && array.shape.every((size, at) => size === shape[at]);
}

function overlaps(one: ArrayBufferView, other: ArrayBufferView): boolean {
  if (one.buffer !== other.buffer) return false;
  return one.byteOffset < other.byteOffset + other.byteLength && other.byteOffset < one.byteOffset + one.byteLength;
}

/** What a plain object or an array holds itself. */
function membersOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (typeof value !== 'object' || value === null) return [];
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? Object.values(value) : [];
}

/** A lane between runs of a stage; each turn gets a `Lane` of its own, whose signal is that item's. */
export class OwnedLane {
  readonly #device: Device;
  readonly #stream: Stream;
  readonly #index: number;
  readonly #arrays: Map<string, Shelf> = new Map();
  readonly #pinned: Map<string, PinnedArray> = new Map();

  constructor(device: Device, stream: Stream, index: number) {
    this.#device = device;
    this.#stream = stream;
    this.#index = index;
  }

  begin(signal: AbortSignal): Lane {
    return {
      index: this.#index,
      device: this.#device,
      stream: this.#stream,
      signal,
      array: <D extends DType>(key: string, shape: Shape, dtype?: DTypeLike<D>) =>
        this.#array(key, shape, dtype ?? 'f32') as DeviceArray<D>,
      pinned: <D extends DType>(key: string, shape: Shape, dtype?: DTypeLike<D>) =>
        this.#pinnedArray(key, shape, dtype ?? 'f32') as PinnedArray<D>,
      detach: (array) => this.#detach(array),
    };
  }

  /** Throws ArgumentError for a stage's result that is memory of this lane, or that holds some directly. */
  checkResult(result: unknown): void {
    const part = [result, ...membersOf(result)].find((value) => this.#isOwn(value));
    if (part === undefined) return;
    const message = `The result of the stage is memory of lane ${this.#index}, which the lane's next item writes to: read() it, copy it, or give lane.detach(array).`;
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument: 'stage', value: part });
  }

  free(): void {
    for (const { memory } of this.#arrays.values()) memory[Symbol.dispose]();
    for (const array of this.#pinned.values()) array[Symbol.dispose]();
    this.#arrays.clear();
    this.#pinned.clear();
  }

  #isOwn(value: unknown): boolean {
    if (value instanceof DeviceArray)
      return [...this.#arrays.values()].some(({ memory }) => memory.storage === value.storage && !value.isDisposed);
    if (value instanceof PinnedArray) return [...this.#pinned.values()].some(({ storage }) => storage === value.storage);
    return ArrayBuffer.isView(value) && [...this.#pinned.values()].some(({ data }) => overlaps(data, value));
  }

  #array(key: string, shape: Shape, type: DTypeLike<DType>): DeviceArray {
    const dtype = nameOf(type);
    const sizes = typeof shape === 'number' ? [shape] : shape;
    const length = sizes.reduce((product, size) => product * size, 1);
    const known = this.#arrays.get(key);
    // A stage may have disposed it: its memory may have another owner by now.
    if (known && !known.memory.isDisposed && known.memory.dtype === dtype && known.memory.length >= length) {
      if (hasShape(known.array, sizes) && !known.array.isDisposed) return known.array;
      const { memory } = known;
      const array = hasShape(memory, sizes) ? memory : memory.subarray(0, length).reshape(sizes);
      this.#arrays.set(key, { memory, array });
      return array;
    }
    // Freed behind the work that still uses it, and forgotten, since the larger one may be refused.
    this.#arrays.delete(key);
    known?.memory[Symbol.dispose]();
    const memory = this.#stream.empty(sizes, dtype);
    this.#arrays.set(key, { memory, array: memory });
    return memory;
  }

  /** Pinned memory comes from an arena, where another size costs nothing: it is always of the very shape. */
  #pinnedArray(key: string, shape: Shape, type: DTypeLike<DType>): PinnedArray {
    const dtype = nameOf(type);
    const sizes = typeof shape === 'number' ? [shape] : shape;
    const known = this.#pinned.get(key);
    if (known && !known.isDisposed && known.dtype === dtype && hasShape(known, sizes)) return known;
    this.#pinned.delete(key);
    known?.[Symbol.dispose]();
    const made = this.#device.pinned(sizes, dtype);
    this.#pinned.set(key, made);
    return made;
  }

  #detach<A extends DeviceArray | PinnedArray>(array: A): A {
    for (const [key, known] of this.#pinned) {
      if (known !== array || array.isDisposed) continue;
      this.#pinned.delete(key);
      return array;
    }
    for (const [key, { memory, array: known }] of this.#arrays) {
      if (known !== array || array.isDisposed) continue;
      if (memory === array) {
        this.#arrays.delete(key);
        return array;
      }
      // A view does not own its memory: the receiver gets a copy that does, made behind what still writes the view.
      const copy = this.#stream.empty(known.shape, known.dtype);
      try {
        this.#stream.copy(copy, known);
      } catch (error) {
        copy[Symbol.dispose]();
        throw error;
      }
      this.#arrays.delete(key);
      memory[Symbol.dispose]();
      return copy as A;
    }
    throw new ArgumentError('ERR_MILLRACE_ARGUMENT', 'The array is not one of this lane, or was detached or disposed before.', {
      argument: 'array',
      value: array,
    });
  }
}

function nameOf(dtype: DTypeLike<DType>): DType {
  return typeof dtype === 'string' ? dtype : dtype.dtype;
}

/** The lanes of one run. */
export interface LaneSet {
  readonly lanes: readonly OwnedLane[];
  /** Frees the arrays in stream order, then drains and closes the lanes' own streams. */
  close(): Promise<void>;
}

/** Lanes on the given streams in turn, or on streams of their own, which close with them. */
export function openSimd(device: Device, depth: number, streams: readonly Stream[] | undefined): LaneSet {
  const ownStreams: Stream[] = [];
  const lanes: OwnedLane[] = [];
  const close = async (): Promise<void> => {
    for (const lane of lanes) lane.free();
    await Promise.all(ownStreams.map((stream) => stream.close()));
  };
  try {
    for (let at = 0; at < depth; at++) {
      let stream = streams?.[at % streams.length];
      if (!stream) ownStreams.push((stream = device.createStream({ label: `lane ${String(at)}` })));
      lanes.push(new OwnedLane(device, stream, at));
    }
  } catch (error) {
    void close().catch(() => undefined);
    throw error;
  }
  return { lanes, close };
}
