// The control thread of one device. It opens the device natively, which starts the channel thread that issues records. Then
// it runs the calls that may block: building and loading kernels, page-locking, closing.
//
// This environment keeps references to the timeline and to all host memory that the device uses. If only the owner kept
// them, they would be freed with a terminated owner while the device still writes.
import { type MessagePort, parentPort } from 'node:worker_threads';
import { KernelBuilder } from '../toolchain/images/builder.js';
import type { Nvrtc } from '../toolchain/compilers/cuda-compiler.js';
import { endBuildsWith } from '../toolchain/system/exit-cleanup.js';
import type { Build, BuildSpec } from '../core/channel/build.js';
import type { ModuleReport, VariableSpec } from '../core/channel/channel.js';
import type { ControlName } from '../core/channel/control.js';
import {
  CompileError,
  DeviceLostError,
  encodeError,
  LaunchError,
  MillraceError,
  OutOfMemoryError,
  StateError,
  UnavailableError,
  UnsupportedError,
} from '../core/base/errors.js';
import { growableSharedBuffer } from '../core/channel/shared-buffer.js';
import type { Binding, NativeFailure } from '../native/binding.js';
import { loadBinding } from '../native/load.js';
import { MAX_STREAMS, Status, TimelineSlot } from '../protocol/protocol.gen.js';
import type { BackendName, NativeDeviceInfo } from '../protocol/reports.js';
import type { FromWorker, ToWorker } from './messages.js';

/** The most that one SharedArrayBuffer can reserve. */
const ARENA_BYTES = 4 * 2 ** 30;
/** The arena's first size: an empty buffer has no address. */
const PAGE_BYTES = 4096;
const TIMELINE_BYTES = MAX_STREAMS * TimelineSlot.BYTE_SIZE;

/** The image of a kernel whose module is loaded already. */
const NO_IMAGE: Uint8Array = new Uint8Array(0);

/** The capability that a device lacks when it does not support a call. */
const CAPABILITIES: Partial<Record<ControlName, string>> = {
  setPeer: 'peer access',
  exportEvent: 'interprocess',
  openEvent: 'interprocess',
  exportMemory: 'interprocess',
  openMemory: 'interprocess',
  elapsed: 'timing',
};

const port = parentPort as MessagePort;
const binding: Binding = loadBinding();
endBuildsWith(binding);
let device: ControlledDevice | undefined;

/** The open device on its control thread. */
class ControlledDevice {
  readonly channel: number;
  readonly #builder: KernelBuilder;
  readonly #isOnCpu: boolean;
  readonly #pagesCanBeLocked: boolean;
  readonly #building: Set<number> = new Set();
  readonly #modules: Map<number, Promise<ModuleReport>> = new Map();
  /** By memory handle. */
  readonly #binding: Map<number, VariableSpec> = new Map();
  /** Buffers that the device writes into and that the owner has not collected; undefined where the allocation failed. */
  readonly #lent: Map<number, ArrayBuffer | undefined> = new Map();
  #isClosing = false;

  constructor(backend: BackendName, info: NativeDeviceInfo, maxPending: number) {
    const timeline = growableSharedBuffer(TIMELINE_BYTES, TIMELINE_BYTES);
    const arena = growableSharedBuffer(PAGE_BYTES, ARENA_BYTES);
    const views = [new Uint8Array(timeline, 0, TIMELINE_BYTES), new Uint8Array(arena, 0, PAGE_BYTES)] as const;
    this.channel = binding.openDevice(backend, info.ordinal, ...views, ARENA_BYTES, maxPending);
    this.#builder = new KernelBuilder(
      backend === 'cpu' ? { backend } : { backend, computeCapability: info.computeCapability, ...nvrtc(info.ordinal) },
    );
    this.#isOnCpu = backend === 'cpu';
    this.#pagesCanBeLocked = backend === 'cuda';
    send({ type: 'opened', channel: this.channel, info: binding.deviceInfo(this.channel), timeline, arena });
  }

  prepare(): void {
    // If this fails, the next build prepares again and reports the error.
    this.#builder.prepare().catch(() => {});
  }

  /** Builds and loads a kernel. Meanwhile the channel parks the streams that launch it. */
  async build(handle: number, spec: Build, module: number | undefined): Promise<void> {
    this.#building.add(handle);
    try {
      // The image of a module is the same for every list of parameters: this build only compares the kernel's own list.
      if (module !== undefined && 'parameterChecks' in spec) await this.#builder.build(spec);
      const { image = NO_IMAGE, compiler, fromCache, ms } = await (module === undefined ? this.#builder.build(spec) : this.#loaded(module));
      if (this.#isClosing) return;
      const { entry, isBounded, isLaunching = false } = spec;
      // On a GPU, CUDA itself handles the assertions and device launches of CUDA C++ source.
      const isChecked = spec.isChecked || ((spec.isAsserting === true || isLaunching) && this.#isOnCpu);
      const limits = binding.installKernel(this.channel, handle, { image, entry, isBounded, isLaunching, isChecked, module });
      send({ type: 'built', handle, compiler, fromCache, ms, limits });
    } catch (error) {
      if (this.#isClosing) return;
      // Send the reason first: the owner needs it when it sees the failed launches.
      send({ type: 'buildFailed', handle, error: encodeError(asMillraceError(error, `Kernel ${spec.name} does not load`)) });
      binding.failKernel(this.channel, handle, error instanceof UnavailableError ? Status.UNAVAILABLE : Status.COMPILE);
    } finally {
      this.#building.delete(handle);
    }
  }

  /** Loads a module. `build` and `bindVariable` wait for it before they load its kernels and bind its variables. */
  async loadModule(module: number, spec: BuildSpec): Promise<void> {
    const loading = this.#load(module, spec);
    this.#modules.set(module, loading);
    try {
      send({ type: 'moduleLoaded', module, ...(await loading) });
    } catch (error) {
      if (!this.#isClosing) send({ type: 'moduleFailed', module, error: encodeError(error) });
    }
  }

  async #load(module: number, spec: BuildSpec): Promise<ModuleReport> {
    const { image, compiler, fromCache, ms } = await this.#builder.build(spec);
    if (!this.#isClosing) {
      try {
        binding.loadModule(this.channel, module, image);
      } catch (error) {
        throw asMillraceError(error, `The module of kernels ${spec.name} does not load`);
      }
    }
    return { compiler, fromCache, ms };
  }

  #loaded(module: number): Promise<ModuleReport & { readonly image?: Uint8Array }> {
    return this.#modules.get(module) as Promise<ModuleReport>;
  }

  /** Binds a variable to a memory handle. Meanwhile the channel parks the streams that name the handle. */
  async bindVariable(handle: number, variable: VariableSpec): Promise<void> {
    const { module, byteLength, failure } = variable;
    this.#binding.set(handle, variable);
    try {
      await this.#loaded(module);
      if (this.#isClosing) return;
      this.#bind(handle, variable);
      send({ type: 'variableBound', handle });
    } catch (error) {
      if (this.#isClosing) return;
      send({ type: 'variableFailed', handle, error: encodeError(error) });
      binding.failVariable(this.channel, handle, byteLength, failure);
    } finally {
      this.#binding.delete(handle);
    }
  }

  #bind(handle: number, { module, name, byteLength }: VariableSpec): void {
    let found: number;
    try {
      found = binding.bindVariable(this.channel, handle, module, name, byteLength);
    } catch (error) {
      const { status } = error as NativeFailure;
      if (status === Status.ARGUMENT) throw badVariable(`The module has no variable '${name}'.`);
      if (status === Status.UNSUPPORTED) throw badVariable(`The variable '${name}' is const: its value is fixed in the source.`);
      throw asMillraceError(error, `The address of variable '${name}' cannot be found`);
    }
    if (found === byteLength) return;
    throw badVariable(
      `The size of the variable '${name}' (${found} bytes) differs from that of the requested array (${byteLength} bytes).`,
    );
  }

  register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void {
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    try {
      binding.registerHost(this.channel, handle, bytes, isLocked && this.#pagesCanBeLocked);
    } catch (error) {
      send({ type: 'registerFailed', handle, error: encodeError(asMillraceError(error, `${byteLength} bytes cannot be page-locked`)) });
      // Copies of pageable memory are slower but correct.
      binding.registerHost(this.channel, handle, bytes, false);
    }
  }

  unregister(handle: number): void {
    binding.unregisterHost(this.channel, handle, false);
    send({ type: 'unregistered', handle });
  }

  lend(handle: number, byteLength: number): void {
    const bytes = bytesOf(byteLength);
    this.#lent.set(handle, bytes?.buffer);
    // Without memory, register one byte: copies into it fail as out of bounds.
    binding.registerHost(this.channel, handle, bytes ?? new Uint8Array(1), false);
  }

  collect(handle: number): void {
    const buffer = this.#lent.get(handle);
    this.#lent.delete(handle);
    binding.unregisterHost(this.channel, handle, true);
    if (buffer !== undefined) {
      send({ type: 'collected', handle, buffer }, [buffer]);
      return;
    }
    const error = new OutOfMemoryError('ERR_MILLRACE_MEMORY', 'There is not enough host memory for the result of the read.', 0, 0);
    send({ type: 'notLent', handle, error: encodeError(error) });
  }

  answer(id: number, name: ControlName, args: readonly unknown[]): void {
    try {
      const call = binding[name] as (channel: number, ...args: readonly unknown[]) => unknown;
      send({ type: 'answered', id, value: call(this.channel, ...args) });
    } catch (error) {
      const refused = name === 'openEvent' || name === 'openMemory' ? asUnopened(error) : error;
      send({ type: 'refused', id, error: encodeError(asMillraceError(refused, `The call ${name} failed`, CAPABILITIES[name])) });
    }
  }

  close(): Promise<void> {
    this.#isClosing = true;
    // The channel ends after the queued records; launches of these kernels would wait forever.
    for (const handle of this.#building) binding.failKernel(this.channel, handle, Status.STATE);
    for (const [handle, { byteLength, failure }] of this.#binding) binding.failVariable(this.channel, handle, byteLength, failure);
    return binding.closeDevice(this.channel);
  }

  destroy(): Promise<void> {
    this.#isClosing = true;
    return binding.destroyDevice(this.channel);
  }
}

/** An error about a variable that only the compiled image shows. */
function badVariable(message: string): CompileError {
  return new CompileError('ERR_MILLRACE_COMPILE', `K705: ${message}`, message, [{ code: 'K705', line: 1, column: 1, message }]);
}

/** A zeroed buffer; undefined if the allocation fails. */
function bytesOf(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
  try {
    return new Uint8Array(byteLength);
  } catch {
    return undefined;
  }
}

function nvrtc(ordinal: number): { readonly nvrtc?: Nvrtc } {
  const found = binding.nvrtc();
  if (found === undefined) return {};
  return {
    nvrtc: {
      ...found,
      compile: (source, name, options) => binding.compileNvrtc(source, name, options),
      link: (cubin, library, architecture) => binding.linkDevice(ordinal, cubin, library, architecture),
    },
  };
}

function send(message: FromWorker, moved: readonly ArrayBuffer[] = []): void {
  port.postMessage(message, moved);
}

/** Turns the status of a native failure into an error of the library. */
function asMillraceError(error: unknown, what: string, capability: string = ''): unknown {
  if (error instanceof MillraceError || !(error instanceof Error)) return error;
  const { status, driverStatus, message } = error as NativeFailure;
  const facts = { driverStatus, cause: error };
  switch (status) {
    case Status.COMPILE:
      return new CompileError('ERR_MILLRACE_COMPILE', `${what}: ${message}`, message, [], facts);
    case Status.OUT_OF_MEMORY:
      return new OutOfMemoryError('ERR_MILLRACE_MEMORY', `${what}: ${message}`, 0, 0, facts);
    case Status.UNAVAILABLE:
      return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `${what}: ${message}`, [], facts);
    case Status.UNSUPPORTED:
      return new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', `${what}: ${message}`, capability, facts);
    case Status.STATE:
      return new StateError('ERR_MILLRACE_STATE', `${what}: ${message}`, facts);
    case Status.DEVICE_LOST:
      return new DeviceLostError('ERR_MILLRACE_LOST', `${what}: ${message}`, 'fault', facts);
    default:
      return status === undefined ? error : new LaunchError('ERR_MILLRACE_LAUNCH', `${what}: ${message}`, facts);
  }
}

/** Status codes of failures that are not about the handle itself. */
const NOT_THE_HANDLE: ReadonlySet<Status> = new Set([
  Status.STATE,
  Status.UNSUPPORTED,
  Status.UNAVAILABLE,
  Status.OUT_OF_MEMORY,
  Status.DEVICE_LOST,
]);

/** If the driver refuses a handle, the process that exported it has usually ended. */
function asUnopened(error: unknown): unknown {
  const { status, driverStatus, message } = error as NativeFailure;
  if (driverStatus === undefined || NOT_THE_HANDLE.has(status)) return error;
  const help = ['The process that created the handle must still run on the same GPU, and must not have freed its memory or event.'];
  const what = `The handle of another process cannot be opened: ${message}`;
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', what, help, { driverStatus, cause: error });
}

function open(message: Extract<ToWorker, { readonly type: 'open' }>): void {
  try {
    device = new ControlledDevice(message.backend, message.info, message.maxPending);
    // Prepare after the requests that the owner sends at once.
    setImmediate(() => device?.prepare());
  } catch (error) {
    const what = `Device ${message.backend}:${message.info.ordinal} cannot be opened`;
    send({ type: 'openFailed', error: encodeError(asMillraceError(error, what)) });
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
      open(message);
      break;
    case 'build':
      void device?.build(message.handle, message.build, message.module);
      break;
    case 'module':
      void device?.loadModule(message.module, message.build);
      break;
    case 'variable':
      void device?.bindVariable(message.handle, message.variable);
      break;
    case 'register':
      device?.register(message.handle, message.buffer, message.byteOffset, message.byteLength, message.isLocked);
      break;
    case 'lend':
      device?.lend(message.handle, message.byteLength);
      break;
    case 'collect':
      device?.collect(message.handle);
      break;
    case 'ask':
      device?.answer(message.id, message.name, message.args);
      break;
    case 'unregister':
      device?.unregister(message.handle);
      break;
    case 'close':
      void end(device?.close());
      break;
    case 'destroy':
      void end(device?.destroy());
  }
});

send({ type: 'enumerated', backends: binding.enumerate() });
