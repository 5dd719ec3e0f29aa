// The methods of streams that copy and fill arrays, and make and copy textures. Recorder has the others.
// Thread: the one that made it.
import { refuseSurplus, surplusArgument } from '../base/arguments.js';
import type { AllocKind } from '../../protocol/protocol.gen.js';
import type { OperationKind } from '../base/snapshots.js';
import { copyTrace, isTraced } from '../base/trace.js';
import { submitBatch } from '../copies/batch.js';
import type { CopyPlan } from '../copies/copy-plan.js';
import { refuseOrdinary, submitTransfer } from '../copies/transfer.js';
import type { DeviceCore } from '../device/device-core.js';
import type { Ordering } from '../device/stream-context.js';
import type { DType, HostArray, HostOf, ScalarInput } from '../elements/dtype.js';
import { ArraySlot, ScalarSlot } from '../graphs/slots.js';
import { allocateArray } from '../memory/texture-memory.js';
import type { Operation } from '../operations/operation.js';
import { traceOperation } from '../operations/traced-operation.js';
import type { Timeline } from '../timeline/timeline.js';
import type { WaitOptions } from '../waits/wait.js';
import { ArrayFactory, type DTypeOf } from './array-factory.js';
import type { DeviceArray } from './array.js';
import { type CopyBatchOptions, planBatch, readBatch } from './copy-batch.js';
import { type CopyOptions, planCopy, readCopyOptions } from './copy.js';
import { submitFill } from './fill.js';
import type { PinnedArray } from './pinned.js';
import { submitSlotCopy, submitSlotFill } from './slot-copies.js';
import { isDirect, planTextureCopy, submitArrayCopy } from './texture-copy.js';
import { type LinearTextureOptions, planTexture, type TextureDType, type TextureOptions } from './texture-options.js';
import { Texture } from './texture.js';

/** A pair of `stream.copyBatch`, the destination first, as in `stream.copy`. At most one of the two is an ordinary typed array. */
export type CopyPair = {
  readonly [D in DType]: readonly [
    dst: DeviceArray<D> | PinnedArray<D> | HostOf[D],
    src: DeviceArray<NoInfer<D>> | PinnedArray<NoInfer<D>> | HostOf[NoInfer<D>],
  ];
}[DType];

/** The part of a stream that moves elements. */
export abstract class CopyRecorder extends ArrayFactory {
  /** @internal */
  abstract readonly core: DeviceCore;
  /** How the stream is ordered with other streams that use the same arrays: see `StreamOptions.ordering`. */
  abstract readonly ordering: Ordering;
  /** @internal */
  abstract timeline: Timeline;
  /** The stream's name in messages and in `device.inspect()`. */
  abstract readonly label: string;
  /** @internal Throws if the stream takes no work any more. */
  abstract checkOpen(): void;
  /** @internal */
  abstract allocate<D extends DType>(shape: readonly number[], dtype: D, kind?: AllocKind): DeviceArray<D>;
  /** @internal The current stream of the device, for readbacks. */
  protected abstract readonly current: CopyRecorder;
  /** @internal The operation that the stream's last record was submitted for. */
  protected abstract operation(kind: OperationKind, ticket: number, label: string | undefined, bytes: number | undefined): Operation;
  /** @internal Names an allocation. */
  protected abstract noteAlloc(ticket: number, bytes: number): void;

  /**
   * Creates a texture, on this stream: `cudaMallocArray` and `cudaCreateTextureObject`, `CUDAarray` and `TextureObject` of CuPy, Warp's
   * `Texture2D`, `CuTextureArray` and `CuTexture` of CUDA.jl. Its memory is a CUDA array on a GPU, plain memory on a CPU device. Throws
   * ArgumentError for bad options and for extents beyond the limits of the device, CaptureError in a capture. If memory runs out,
   * operations that use the texture reject with an UpstreamError, whose cause is the OutOfMemoryError.
   * @example using volume = stream.createTexture({ shape: [64, 64, 64], dtype: 'u8', read: 'normalizedFloat', filter: 'linear' });
   */
  createTexture<T extends HostArray | PinnedArray | DeviceArray>(
    opts: TextureOptions<never, T> & { readonly data: T; readonly dtype?: never },
  ): Texture<TextureDType & DTypeOf<T>>;
  createTexture<D extends TextureDType = 'f32'>(opts: TextureOptions<D>): Texture<D>;
  /**
   * Creates a texture that reads the memory of an array, without a copy: `cudaResourceTypeLinear` with one dimension, for `tex1Dfetch`, and
   * `cudaResourceTypePitch2D` with two. The array begins at a multiple of 512 bytes of its memory; with two dimensions, its rows are a multiple
   * of 32 bytes. The texture ends with the array.
   */
  createTexture<D extends TextureDType>(opts: LinearTextureOptions<D>): Texture<D>;
  createTexture(opts: unknown): Texture {
    if (arguments.length > 1) refuseSurplus('createTexture', arguments, 1);
    this.checkOpen();
    const plan = planTexture(this.core, opts);
    const { recording } = this.timeline;
    if (recording !== undefined)
      throw recording.refusal(this.timeline, 'unsupported-node', 'a graph cannot create a texture: create it before the capture');
    const { array, byteLength, layout } = plan;
    const made = array === undefined ? allocateArray(this, byteLength, layout) : undefined;
    if (made !== undefined) this.noteAlloc(made.ticket, byteLength);
    const texture = new Texture(this, plan, made?.storage, (own, wait) => this.current.#readTexture(own, wait));
    if (plan.data === undefined) return texture;
    try {
      this.#copyTexture(texture, plan.data, {});
    } catch (error) {
      texture[Symbol.dispose]();
      throw error;
    }
    return texture;
  }

  /**
   * Copies elements between arrays of any open device, pinned arrays and plain typed arrays, contiguous or not: `cuMemcpyAsync`,
   * `cuMemcpyPeerAsync`, CuPy's `set` and `get`, `wp.copy`. Nothing is converted. The bytes of a plain typed array are read during the
   * call, with two exceptions: `transfer` hands over the array's buffer, and a view of a SharedArrayBuffer is borrowed until the copy is
   * done. Contiguous arrays are sequences of elements, as in Warp: a copy from shape [3, 2] to [2, 3] keeps their order, and a copy of 3 elements
   * to an array of 4 leaves the last one as it is. `done` resolves when the bytes are in `dst`; later operations of the stream come after the copy without an `await`. Throws
   * ArgumentError if `dst` and `src` differ in dtype, differ in shape while one is not contiguous, overlap, or are too short for the range.
   * @example stream.copy(y, x);
   */
  copy<D extends DType>(
    dst: DeviceArray<D> | PinnedArray<D>,
    src: DeviceArray<NoInfer<D>> | PinnedArray<NoInfer<D>> | HostOf[NoInfer<D>],
    opts?: CopyOptions,
  ): Operation;
  /**
   * Copies to a plain typed array. Its contents are unspecified until `done`, which rejects with StateError if it was detached meanwhile.
   * @example await stream.copy(host, x).done;
   */
  copy<D extends DType>(dst: HostOf[NoInfer<D>], src: DeviceArray<D> | PinnedArray<D>, opts?: CopyOptions): Operation;
  /**
   * In a capture, copies from or to the array that each launch of the graph gives for a slot: as many elements as the other end has, or
   * `count`. Both ends are contiguous, and device arrays belong to this device. A launch with an array of another length is an ArgumentError.
   */
  copy<D extends DType>(
    dst: DeviceArray<D> | PinnedArray<D> | ArraySlot<D, 'out' | 'inout'>,
    src: DeviceArray<NoInfer<D>> | PinnedArray<NoInfer<D>> | ArraySlot<NoInfer<D>, 'in' | 'inout'>,
    opts?: CopyOptions,
  ): Operation;
  /**
   * Copies all elements of a texture, channels innermost: `cudaMemcpy2DToArrayAsync`, `CUDAarray.copy_from` of CuPy. `src` has as many values
   * as the texture. Arrays of this device are copied directly, others through temporary memory. Of the options only `label` and `transfer`
   * apply. Throws ArgumentError for another dtype or number of values and for a texture of another device, CaptureError in a capture.
   * @example stream.copy(image, pixels);
   */
  copy<D extends TextureDType>(
    dst: Texture<D>,
    src: DeviceArray<NoInfer<D>> | PinnedArray<NoInfer<D>> | HostOf[NoInfer<D>],
    opts?: CopyOptions,
  ): Operation;
  /** Copies all elements of a texture to an array: `cudaMemcpy2DFromArrayAsync`. Otherwise as to a texture. */
  copy<D extends TextureDType>(
    dst: DeviceArray<NoInfer<D>> | PinnedArray<NoInfer<D>> | HostOf[NoInfer<D>],
    src: Texture<D>,
    opts?: CopyOptions,
  ): Operation;
  copy(dst: unknown, src: unknown, given?: CopyOptions, surplus?: unknown): Operation {
    if (surplus !== undefined) refuseSurplus('copy', arguments, 3);
    return this.#traced(given, () => this.#copy(dst, src, given));
  }

  /** With a subscriber of `millrace:copy`. The nodes of a capture are not traced. */
  #traced(opts: CopyBatchOptions | undefined, submit: () => Operation): Operation {
    if (!isTraced(copyTrace) || this.timeline.recording !== undefined) return submit();
    return traceOperation(copyTrace, { device: this.core.name, stream: this.label, name: opts?.label }, submit);
  }

  #copy(dst: unknown, src: unknown, given: CopyOptions | undefined): Operation {
    const isOfTexture = dst instanceof Texture || src instanceof Texture;
    const opts = readCopyOptions(given, isOfTexture ? ['label', 'transfer'] : undefined);
    this.checkOpen();
    if (isOfTexture) return this.#copyTexture(dst, src, opts);
    if (dst instanceof ArraySlot || src instanceof ArraySlot) {
      const copied = submitSlotCopy(this, dst, src, opts);
      return this.operation('copy', copied.ticket, opts.label, copied.byteLength);
    }
    return this.#submitCopy(planCopy(dst, src, opts));
  }

  /**
   * Copies several pairs `[dst, src]` as one operation: `cudaMemcpyBatchAsync` (CUDA 12.8 and newer; with older drivers one
   * copy after the other), `torch._foreach_copy_`. One `done`, one label and one entry of `operations$` stand for all pairs. The copies run in any
   * order, after the earlier operations of the stream and before its later ones. Each pair is as in `copy`, without options: pass
   * `subarray` for a part. Arrays are contiguous and of this device; `copy` takes others. If one pair fails, the batch fails. In a capture, each
   * pair is a node. Throws ArgumentError that names the pair if `copy` would refuse it, if one pair writes what another one reads or writes, and
   * for more than 512 pairs.
   * @example await stream.copyBatch([[keys, hostKeys], [values, hostValues]]).done;
   */
  copyBatch(pairs: readonly CopyPair[], opts?: CopyBatchOptions): Operation {
    if (arguments.length > 2) refuseSurplus('copyBatch', arguments, 2);
    return this.#traced(opts, () => this.#copyBatch(pairs, opts));
  }

  #copyBatch(pairs: readonly CopyPair[], opts: CopyBatchOptions | undefined): Operation {
    const given = readBatch(pairs, opts);
    this.checkOpen();
    const plan = planBatch(this.core, given);
    const { timeline } = this;
    if (timeline.recording !== undefined && plan.copies.length > 0) {
      for (const { dst, src } of plan.copies) refuseOrdinary(timeline.recording, timeline, dst, src);
      return plan.copies.map((copy) => this.#submitCopy(copy)).at(-1) as Operation;
    }
    const { ticket, hostCompletion } = submitBatch(this, plan);
    return this.operation('copy', ticket, plan.label, plan.byteLength).moves(hostCompletion);
  }

  /**
   * Sets every element of an array or view: `cuMemsetD8Async` to `cuMemsetD32Async`, `ndarray.fill`, `wp.array.fill_`. Throws
   * ArgumentError if `value` does not fit the dtype. In a capture, `dst` and `value` may be slots: then each launch of the graph fills the
   * array that it gives, or with the value that it gives. `dst` is contiguous then.
   */
  fill<D extends DType>(
    dst: DeviceArray<D> | ArraySlot<D, 'out' | 'inout'>,
    value: ScalarInput<NoInfer<D>> | ScalarSlot<NoInfer<D>>,
  ): Operation;
  fill<D extends DType>(dst: DeviceArray<D> | ArraySlot, value: ScalarInput<D> | ScalarSlot<D>, surplus?: unknown): Operation {
    if (surplus !== undefined)
      throw surplusArgument('A fill', surplus, 'it has no options. To fill a part of an array, give a view of it.');
    this.checkOpen();
    if (dst instanceof ArraySlot || value instanceof ScalarSlot)
      return this.operation('fill', submitSlotFill(this, dst, value), undefined, undefined);
    const { ticket, parts } = submitFill(this, dst, value);
    return this.operation('fill', ticket, undefined, dst.byteLength).moves(undefined, parts);
  }

  #submitCopy(plan: CopyPlan): Operation {
    const { ticket, hostCompletion, parts } = submitTransfer(this, plan);
    return this.operation('copy', ticket, plan.label, plan.byteLength).moves(hostCompletion, parts);
  }

  #copyTexture(dst: unknown, src: unknown, opts: CopyOptions): Operation {
    const plan = planTextureCopy(this, dst, src, opts);
    const { texture, other, isUpload, label } = plan;
    const { array, byteLength, dtype, length } = texture;
    if (array !== undefined) {
      // The texture is the memory of the array.
      return isUpload ? this.copy(array as never, other as never, opts) : this.copy(other as never, array as never, opts);
    }
    if (isDirect(plan, this.core))
      return this.operation('copy', submitArrayCopy(this, texture, plan.other, isUpload, label), label, byteLength);
    const between = this.allocate([length], dtype);
    try {
      if (isUpload) {
        this.copy(between as never, other as never, opts);
        return this.operation('copy', submitArrayCopy(this, texture, between, true, label), label, byteLength);
      }
      this.operation('copy', submitArrayCopy(this, texture, between, false, label), label, byteLength);
      return this.copy(other as never, between as never, opts);
    } finally {
      between[Symbol.dispose]();
    }
  }

  async #readTexture(texture: Texture, opts: WaitOptions | undefined): Promise<HostOf[TextureDType]> {
    this.checkOpen();
    const between = this.allocate([texture.length], texture.dtype);
    try {
      this.#copyTexture(between, texture, {});
      return await between.read(opts);
    } finally {
      between[Symbol.dispose]();
    }
  }
}
