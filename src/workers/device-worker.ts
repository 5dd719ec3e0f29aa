// The control thread of one device. It opens the device natively, which starts the channel thread that issues records. Then
// it runs the calls that may block: building and loading kernels, page-locking, closing.
//
// This environment keeps references to the timeline and to all host memory that the device uses. If only the threads that
// use the device kept them, they would be freed with a terminated thread while the device still writes. Threads that share
// the device request it with `postMessageToThread`.
import { randomUUID } from 'node:crypto';
import { type MessagePort, parentPort, threadId } from 'node:worker_threads';
import type { BuildTarget } from '../toolchain/images/builder.js';
import { isOfSystem, outside } from '../toolchain/system/environment-errors.js';
import { endBuildsWith } from '../toolchain/system/exit-cleanup.js';
import type { DeviceAddress } from '../core/base/device-token.js';
import { encodeError } from '../core/base/errors.js';
import { type GrowableSharedBuffer, growableSharedBuffer } from '../core/channel/host-buffers.js';
import type { Binding, NativeFailure } from '../native/binding.js';
import { shippedOperations } from '../native/addon-place.js';
import { loadBinding } from '../native/load.js';
import { MAX_STREAMS, TimelineSlot } from '../protocol/protocol.gen.js';
import type { BackendName, NativeDeviceInfo } from '../protocol/reports.js';
import type { DeviceBuilds } from './device-builds.js';
import { type ControlledDevice, WorkerClient } from './worker-client.js';
import { cudaMajorOf, nvrtcOf } from './nvrtc.js';
import type { FromWorker, OpenRequest, ShareRequest, ToWorker } from './messages.js';
import { asOpenFailure } from './native-errors.js';
import { setTimeout } from '../core/base/timers.js';

/** The most that one SharedArrayBuffer can reserve. */
const ARENA_BYTES = 4 * 2 ** 30;
/** The arena's first size: an empty buffer has no address. */
const PAGE_BYTES = 4096;
const TIMELINE_BYTES = MAX_STREAMS * TimelineSlot.BYTE_SIZE;

/** CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED. */
const ALREADY_REGISTERED = 712;
/** Each attempt reserves ARENA_BYTES of addresses. */
const MOST_REFUSED = 16;

/** A program that builds nothing for so long after it opened the device probably loads its data first: the worker is free. */
const IDLE_MS = 100;

const port = parentPort as MessagePort;
const binding: Binding = loadBinding();
endBuildsWith(binding);
let device: WorkerDevice | undefined;

/** The open device on its control thread. */
class WorkerDevice implements ControlledDevice {
  readonly binding: Binding = binding;
  readonly channel: number;
  readonly isOnCpu: boolean;
  readonly findsRaces: boolean;
  isClosing = false;
  /** Of the thread that opened it. */
  readonly opener: WorkerClient = new WorkerClient(this, send);
  /** Of the threads that share it. */
  readonly #sharers: Map<MessagePort, WorkerClient> = new Map();
  readonly #opened: Extract<FromWorker, { readonly type: 'opened' }>;
  readonly #target: BuildTarget;
  #builds: Promise<DeviceBuilds> | undefined;

  constructor(
    backend: BackendName,
    info: NativeDeviceInfo,
    { maxPending, isGuarded, memoryLimitBytes, findsRaces, schedule, seed, images }: OpenRequest,
  ) {
    const { channel, timeline, arena } = openOnFreshPages((...views) =>
      binding.openDevice(backend, info.ordinal, ...views, ARENA_BYTES, maxPending, isGuarded, memoryLimitBytes, schedule, seed),
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
    return binding.closeDevice(this.channel);
  }

  destroy(): Promise<void> {
    this.#tellEnd();
    return binding.destroyDevice(this.channel);
  }

  #tellEnd(): void {
    this.isClosing = true;
    for (const sharer of this.#sharers.keys()) sharer.postMessage({ type: 'ending' } satisfies FromWorker);
  }
}

interface Pages {
  readonly timeline: GrowableSharedBuffer;
  readonly arena: GrowableSharedBuffer;
}

/**
 * Opens a device on new host memory. A driver cannot unlock the pages of a device that was lost, and so refuses their addresses when they come
 * from the system again: then others are taken.
 */
function openOnFreshPages(attempt: (timeline: Uint8Array, arena: Uint8Array) => number): Pages & { readonly channel: number } {
  for (const refused: Pages[] = []; ; ) {
    const pages: Pages = {
      timeline: growableSharedBuffer(TIMELINE_BYTES, TIMELINE_BYTES),
      arena: growableSharedBuffer(PAGE_BYTES, ARENA_BYTES),
    };
    try {
      const channel = attempt(new Uint8Array(pages.timeline, 0, TIMELINE_BYTES), new Uint8Array(pages.arena, 0, PAGE_BYTES));
      return { ...pages, channel };
    } catch (error) {
      if ((error as NativeFailure).driverStatus !== ALREADY_REGISTERED || refused.push(pages) === MOST_REFUSED) throw error;
    }
  }
}

function send(message: FromWorker, moved: readonly ArrayBuffer[] = []): void {
  port.postMessage(message, moved);
}

async function open(message: Extract<ToWorker, { readonly type: 'open' }>): Promise<void> {
  try {
    const { images } = message.request;
    if (images !== undefined) (await import('./device-builds.js')).checkImages(images);
    device = new WorkerDevice(message.backend, message.info, message.request);
    setTimeout(() => void device?.prepare(), IDLE_MS);
  } catch (error) {
    send({ type: 'openFailed', error: encodeError(asOpenFailure(error, `${message.backend}:${message.info.ordinal}`)) });
    port.close();
  }
}

async function end(closed: Promise<void> | undefined): Promise<void> {
  await closed;
  send({ type: 'closed' });
  // A compiler that still runs would keep the thread alive.
  process.exit();
}

port.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'open':
      void open(message);
      break;
    case 'close':
      void end(device?.close());
      break;
    case 'destroy':
      void end(device?.destroy());
      break;
    default:
      device?.opener.receive(message);
  }
});

process.on('workerMessage', (value: unknown) => {
  const request = value as ShareRequest | null | undefined;
  if (request?.type !== 'millrace.share') return;
  if (device === undefined) request.port.close();
  else device.share(request);
});

const backends = binding.enumerate();
send({ type: 'enumerated', backends });
