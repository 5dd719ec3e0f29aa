// Textures and surfaces: memory that kernels read through CUDA's texture functions, and write through its surface functions.
// Thread: owner.
import { TextureFlag } from '../../protocol/protocol.gen.js';
import { badArgument, refuseSurplus } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import type { StateError } from '../base/errors.js';
import { nextSerial } from '../base/serial.js';
import { TEXTURE_STAYS } from '../base/uncloneable.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import type { HostOf } from '../elements/dtype.js';
import { lengthOf } from '../elements/shape.js';
import { disposedError, Lease } from '../memory/lease.js';
import type { Storage } from '../memory/storage.js';
import { createObject } from '../memory/texture-memory.js';
import type { WaitOptions } from '../waits/wait.js';
import type { StridedArray } from './strided-array.js';
import type { TextureAddressMode, TextureDType, TextureFilterMode, TexturePlan, TextureReadMode } from './texture-options.js';

/** Copies the elements of a texture to a new array and reads that. */
type Read = (texture: Texture, opts: WaitOptions | undefined) => Promise<HostOf[TextureDType]>;

/**
 * The writable view of a texture's memory: `cudaSurfaceObject_t`, `cupy.cuda.texture.SurfaceObject`. Launches take it for a `surface`
 * parameter. It lives as long as its texture.
 */
export class Surface {
  /** @internal */
  readonly uncloneable: symbol = TEXTURE_STAYS;
  /** @internal */
  readonly serial: number = nextSerial();
  /** The texture whose memory it writes. */
  readonly texture: Texture;
  readonly #object: Storage;

  /** @internal */
  constructor(texture: Texture, object: Storage) {
    this.texture = texture;
    this.#object = object;
  }

  /** @internal */
  get object(): Storage {
    return this.#object;
  }
}

/**
 * Elements that kernels read by coordinates: `cudaTextureObject_t` with its `cudaArray_t`, `cupy.cuda.texture.TextureObject`, Warp's
 * `Texture2D` and `Texture3D`, `CuTexture` of CUDA.jl. Launches take it for a `texture` parameter, and `stream.copy` copies to and from it.
 * Declare textures with `using`. After disposal, every call that takes it throws a StateError.
 * @example using image = device.createTexture({ shape: [480, 640], data: pixels, filter: 'linear' });
 */
export class Texture<D extends TextureDType = TextureDType> implements Disposable {
  /** @internal */
  readonly uncloneable: symbol = TEXTURE_STAYS;
  /** The type of a channel. */
  readonly dtype: D;
  /** One to three dimensions, the width last. Without the channels. */
  readonly shape: readonly number[];
  /** Values per element. */
  readonly channels: 1 | 2 | 4;
  /** `cudaTextureDesc::filterMode`. */
  readonly filter: TextureFilterMode;
  /** One mode per axis, in the order of `shape`: `cudaTextureDesc::addressMode`, which has x first. */
  readonly address: readonly TextureAddressMode[];
  /** `cudaTextureDesc::normalizedCoords`. */
  readonly normalizedCoordinates: boolean;
  /** `cudaTextureDesc::readMode`. */
  readonly readMode: TextureReadMode;
  /** Bytes of all elements. */
  readonly byteLength: number;
  readonly #core: DeviceCore;
  readonly #storage: Storage;
  /** @internal Where it begins in the storage. */
  readonly byteOffset: number;
  readonly #object: Storage;
  readonly #plan: TexturePlan;
  /** @internal The array whose memory it reads, if it has no memory of its own. */
  readonly array: StridedArray | undefined;
  readonly #read: Read;
  readonly #surface: Surface | undefined;
  readonly #leases: Lease[] = [];
  #isDisposed = false;

  /** @internal `memory`: of its own. */
  constructor(site: StreamContext, plan: TexturePlan, memory: Storage | undefined, read: Read) {
    const { core } = site;
    this.#core = core;
    this.#plan = plan;
    this.#read = read;
    this.dtype = plan.dtype as D;
    this.shape = plan.shape;
    this.channels = plan.channels;
    this.filter = plan.filter;
    this.address = plan.address;
    this.normalizedCoordinates = plan.normalizedCoordinates;
    this.readMode = plan.readMode;
    this.byteLength = plan.byteLength;
    this.array = plan.array;
    this.#storage = memory ?? (plan.array as StridedArray).storage;
    this.#storage.isExposed = true;
    this.byteOffset = plan.array?.byteOffset ?? 0;
    if (memory !== undefined) {
      memory.belongTo({ dtype: plan.dtype, shape: this.#elements });
      this.#leases.push(new Lease(memory, core));
    }
    const source = { storage: this.storage, offset: this.byteOffset, pitch: plan.pitch };
    try {
      this.#object = this.#own(createObject(site, source, plan.layout, plan.sampling));
      if (!plan.layout.hasSurface) return;
      const how = { ...plan.sampling, flags: TextureFlag.SURFACE };
      this.#surface = new Surface(this, this.#own(createObject(site, source, plan.layout, how)));
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** @internal */
  get core(): DeviceCore {
    return this.#core;
  }

  /** @internal What launches order and poison: the memory of its own, or that of the array. */
  get storage(): Storage {
    return this.#storage;
  }

  /** @internal The value that kernels get. */
  get object(): Storage {
    return this.#object;
  }

  /** @internal */
  get plan(): TexturePlan {
    return this.#plan;
  }

  /** The name of the texture in messages, for example 'texture f32[480, 640]'. */
  get label(): string {
    return `texture ${this.dtype}${this.channels === 1 ? '' : `x${this.channels}`}[${this.shape.join(', ')}]`;
  }

  /** The number of values: the elements times the channels. */
  get length(): number {
    return lengthOf(this.shape) * this.channels;
  }

  /** The surface on the same memory. Throws ArgumentError unless the texture was created with `surface: true`, StateError after disposal. */
  get surface(): Surface {
    this.checkUsable();
    if (this.#surface === undefined)
      throw badArgument('surface', this, `The ${this.label} has no surface: create it with { surface: true }.`);
    return this.#surface;
  }

  /**
   * Copies all values to the host, channels innermost, as `array.read()` does; on the device's current stream, after its earlier work.
   * `CUDAarray.copy_to`. Rejects with the errors of `array.read()`.
   */
  async read(opts?: WaitOptions): Promise<HostOf<ArrayBuffer>[D]> {
    if (arguments.length > 1) refuseSurplus('read', arguments, 1);
    this.checkUsable();
    return (await this.#read(this, opts)) as HostOf<ArrayBuffer>[D];
  }

  /** True after disposal of the texture, or of the array whose memory it reads. */
  get isDisposed(): boolean {
    return this.#isDisposed || this.array?.isDisposed === true;
  }

  /** Frees the texture's memory in stream order, after every operation that uses it. Does not free the memory of an array. Never throws. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    for (const lease of this.#leases.toReversed()) lease.end();
  }

  /** @internal Throws StateError after disposal. */
  checkUsable(): void {
    if (this.isDisposed) throw this.disposedError();
  }

  /** @internal */
  disposedError(): StateError {
    return disposedError(`The ${this.label}`, this.core.name);
  }

  get #elements(): readonly number[] {
    return this.channels === 1 ? this.shape : [...this.shape, this.channels];
  }

  #own(object: Storage): Storage {
    object.belongTo({ dtype: this.plan.dtype, shape: this.#elements });
    this.#leases.push(new Lease(object, this.core));
    return object;
  }
}

describeAs(
  Texture.prototype,
  ({ label, core, isDisposed }) => `Texture ${label.slice('texture '.length)} on ${core.name}${isDisposed ? ' (disposed)' : ''}`,
  ({ dtype, shape, channels }) => ({ dtype, shape, channels }),
);
describeAs(
  Surface.prototype,
  ({ texture: { label, core } }) => `Surface of ${label} on ${core.name}`,
  ({ texture: { dtype, shape, channels } }) => ({ dtype, shape, channels }),
);
