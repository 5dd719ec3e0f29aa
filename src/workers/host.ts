// The control thread of one device: a worker, or the main thread of a process. It opens the device natively, which starts the channel thread
// that issues records. Then it runs the calls that may block: building and loading kernels, page-locking, closing.
//
// This environment keeps references to the timeline and to all host memory that the device uses. If only the threads that
// use the device kept them, they would be freed with a terminated thread while the device still writes. Threads that share
// the device request it with `postMessageToThread`.
import { randomUUID } from 'node:crypto';
import { type MessagePort, threadId } from 'node:worker_threads';
import type { BuildTarget } from '../toolchain/images/builder.js';
import { isOfSystem, outside } from '../toolchain/system/environment-errors.js';
import type { DeviceAddress } from '../core/base/device-token.js';
import { encodeError } from '../core/base/errors.js';
import { growableSharedBuffer } from '../core/channel/host-buffers.js';
import type { Binding, NativeFailure } from '../native/binding.js';
import { shippedOperations } from '../native/addon-place.js';
import type { BackendReport } from '../protocol/reports.js';
import type { DeviceBuilds } from './device-builds.js';
import { ARENA_BYTES, freshPages, PAGE_BYTES, type Pages } from './fresh-pages.js';
import { type ControlledDevice, type Send, WorkerClient } from './worker-client.js';
import { cudaMajorOf, nvrtcOf } from './nvrtc.js';
import type { FromWorker, RemotePlace, ShareRequest, ToWorker } from './messages.js';
import { asOpenFailure } from './native-errors.js';
import { setTimeout } from '../core/base/timers.js';

/** Of a device whose owner is in this process. */
const HERE: RemotePlace = { file: 0, channel: 0 };

/** CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED. */
const ALREADY_REGISTERED = 712;
/** Each attempt reserves ARENA_BYTES of addresses. */
const MOST_REFUSED = 16;

/** A program that builds nothing for so long after it opened the device probably loads its data first: the worker is free. */
const IDLE_MS = 100;

type Opening = Extract<ToWorker, { readonly type: 'open' }>;
type SharedMemory = Extract<ToWorker, { readonly type: 'registerShared' }>;

/** The open device on its control thread. */
class HostedDevice implements ControlledDevice {
  readonly binding: Binding;
  readonly channel: number;
  readonly isOnCpu: boolean;
  readonly findsRaces: boolean;
  isClosing = false;
  /** Of the thread that opened it. */
  readonly opener: WorkerClient;
  /** Of the threads that share it. */
  readonly #sharers: Map<MessagePort, WorkerClient> = new Map();
  readonly #opened: Extract<FromWorker, { readonly type: 'opened' }>;
  readonly #target: BuildTarget;
  #builds: Promise<DeviceBuilds> | undefined;

  constructor(binding: Binding, send: Send, backends: readonly BackendReport[], { backend, info, request, remote = HERE }: Opening) {
    const { maxPending, isGuarded, memoryLimitBytes, findsRaces, schedule, seed, images, launchTimeoutMs, threads } = request;
    this.binding = binding;
    this.opener = new WorkerClient(this, send);
    const { channel, timeline, arena } = openOnFreshPages((...views) =>
      binding.openDevice(
        backend,
        info.ordinal,
        ...views,
        ARENA_BYTES,
        maxPending,
        isGuarded,
        memoryLimitBytes,
        schedule,
        seed,
        remote.file,
        remote.channel,
        launchTimeoutMs,
        threads,
      ),
    );
    this.channel = channel;
    this.isOnCpu = backend === 'cpu';
    this.findsRaces = this.isOnCpu && findsRaces;
    this.#target =
      backend === 'cpu'
        ? { backend, findsRaces, images, shipped: shippedOperations() }
        : {
            backend,
            computeCapability: info.computeCapability,
            images,
            nvrtc: nvrtcOf(binding, info.ordinal),
            cudaMajor: cudaMajorOf(backends),
          };
    const address: DeviceAddress = { process: process.pid, thread: threadId, channel: this.channel, key: randomUUID() };
    const known = binding.deviceInfo(this.channel);
    this.#opened = { type: 'opened', backend, maxPending, channel: this.channel, info: known, timeline, arena, address };
    send(this.#opened);
  }

  /**
   * Loads the compiler's code at the first call: it is nineteen twentieths of this worker's code, and not every program builds. In the
   * bundle, the import is a `require`: a failed one is tried again, and `terminate` cannot interrupt it.
   */
  builds(): Promise<DeviceBuilds> {
    return (this.#builds ??= import('./device-builds.js')
      .then(({ deviceBuilds }) => deviceBuilds(this.#target))
      .catch((error: unknown) => {
        // Such as too many open files: the next build tries again.
        this.#builds = undefined;
        throw isOfSystem(error) ? outside('The compiler of kernels was not loaded', error) : error;
      }));
  }

  async prepare(): Promise<void> {
    try {
      await (await this.builds()).builder.prepare();
    } catch {
      // The first build meets the same error, and reports it.
    }
  }

  /** A thread that has the device's key shares it from now on. */
  share({ key, owner, port: its }: ShareRequest): void {
    // An environment that has the device open in another way has no number.
    if (key !== this.#opened.address.key || this.isClosing || owner === 0) {
      its.close();
      return;
    }
    const client = new WorkerClient(this, (message, moved = []) => its.postMessage(message, moved));
    this.#sharers.set(its, client);
    let leaving: Promise<void> | undefined;
    const leave = (): Promise<void> => (leaving ??= client.left(owner).finally(() => this.#sharers.delete(its)));
    its.on('message', (message: ToWorker) => {
      if (message.type === 'leave') void leave().then(() => its.close());
      else client.receive(message);
    });
    // Its thread has ended, whatever it was at.
    its.on('close', () => void leave());
    its.unref();
    its.postMessage(this.#opened);
  }

  close(): Promise<void> {
    this.#tellEnd();
    for (const client of [this.opener, ...this.#sharers.values()]) client.failBuilds();
    return this.binding.closeDevice(this.channel);
  }

  destroy(): Promise<void> {
    this.#tellEnd();
    return this.binding.destroyDevice(this.channel);
  }

  /** Registers memory that the owner, in another process, has in the file. */
  registerShared({ handle, offset, isInArena, byteLength, isLocked }: SharedMemory): void {
    if (isInArena) {
      const { arena } = this.#opened;
      if (arena.byteLength < offset + byteLength) arena.grow(offset + byteLength);
      this.opener.receive({ type: 'register', handle, buffer: arena, byteOffset: offset, byteLength, isLocked });
      return;
    }
    const buffer = this.#mapped(offset, byteLength);
    this.opener.receive({ type: 'register', handle, buffer, byteOffset: 0, byteLength, isLocked });
  }

  /** Without memory, of one byte: copies that use it fail as out of bounds. */
  #mapped(offset: number, byteLength: number): SharedArrayBuffer {
    const bytes = Math.max(PAGE_BYTES, Math.ceil(byteLength / PAGE_BYTES) * PAGE_BYTES);
    try {
      const buffer = growableSharedBuffer(bytes, bytes);
      if (this.binding.remoteMap(this.channel, offset, new Uint8Array(buffer, 0, bytes))) return buffer;
    } catch {
      // The process has no room for it.
    }
    return new SharedArrayBuffer(1);
  }

  #tellEnd(): void {
    this.isClosing = true;
    for (const sharer of this.#sharers.keys()) sharer.postMessage({ type: 'ending' } satisfies FromWorker);
  }
}

/**
 * Opens a device on new host memory. A driver cannot unlock the pages of a device that was lost, and so refuses their addresses when they come
 * from the system again: then others are taken.
 */
function openOnFreshPages(attempt: (timeline: Uint8Array, arena: Uint8Array) => number): Pages & { readonly channel: number } {
  for (const refused: Pages[] = []; ; ) {
    const { views, ...pages } = freshPages();
    try {
      return { ...pages, channel: attempt(...views) };
    } catch (error) {
      if ((error as NativeFailure).driverStatus !== ALREADY_REGISTERED || refused.push(pages) === MOST_REFUSED) throw error;
    }
  }
}

/** What ends the thread or the process, and closes the way of messages. */
export interface HostEnds {
  closePort(): void;
  exit(): void;
}

/** Hosts one device: answers the messages of the thread that opens it. */
export class DeviceHost {
  readonly #binding: Binding;
  readonly #send: Send;
  readonly #ends: HostEnds;
  readonly #backends: readonly BackendReport[];
  #device: HostedDevice | undefined;

  /** Enumerates the devices, and sends them. */
  constructor(binding: Binding, send: Send, ends: HostEnds) {
    this.#binding = binding;
    this.#send = send;
    this.#ends = ends;
    this.#backends = binding.enumerate();
    send({ type: 'enumerated', backends: this.#backends });
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case 'open':
        void this.#open(message);
        break;
      case 'close':
        void this.#end(this.#device?.close());
        break;
      case 'destroy':
        void this.#end(this.#device?.destroy());
        break;
      case 'registerShared':
        this.#device?.registerShared(message);
        break;
      default:
        this.#device?.opener.receive(message);
    }
  }

  share(request: ShareRequest): void {
    if (this.#device === undefined) request.port.close();
    else this.#device.share(request);
  }

  async #open(message: Opening): Promise<void> {
    try {
      const { images } = message.request;
      if (images !== undefined) (await import('./device-builds.js')).checkImages(images);
      this.#device = new HostedDevice(this.#binding, this.#send, this.#backends, message);
      setTimeout(() => void this.#device?.prepare(), IDLE_MS);
    } catch (error) {
      this.#send({ type: 'openFailed', error: encodeError(asOpenFailure(error, `${message.backend}:${message.info.ordinal}`)) });
      this.#ends.closePort();
    }
  }

  async #end(closed: Promise<void> | undefined): Promise<void> {
    await closed;
    this.#send({ type: 'closed' });
    // A compiler that still runs would keep the thread alive.
    this.#ends.exit();
  }
}
