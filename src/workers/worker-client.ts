// Requests of one thread to the worker of a device: builds, host memory, calls that may block. The thread that opened the device has one
// client, and so has each thread that shares it.
// Thread: control.
import type { Build, BuildSpec, FaultPlaces, FaultSource } from '../core/channel/build-spec.js';
import type { ModuleReport, VariableSpec } from '../core/channel/channel.js';
import type { ControlName } from '../core/channel/control.js';
import { unfilledBytes } from '../core/channel/host-buffers.js';
import { CompileError, encodeError, OutOfMemoryError, UnavailableError } from '../core/base/errors.js';
import type { Binding, NativeFailure } from '../native/binding.js';
import { Status } from '../protocol/protocol.gen.js';
import type { DivisionReport, KernelLimits } from '../protocol/reports.js';
import type { BuildResult } from '../toolchain/images/builder.js';
import type { DeviceBuilds } from './device-builds.js';
import type { FromWorker, ToWorker } from './messages.js';
import { asMillraceError, asUnopened, asUntold } from './native-errors.js';

export type Send = (message: FromWorker, moved?: readonly ArrayBuffer[]) => void;

/** The open device of this worker. */
export interface ControlledDevice {
  readonly binding: Binding;
  readonly channel: number;
  readonly isOnCpu: boolean;
  /** Its images find races of shared memory. */
  readonly findsRaces: boolean;
  readonly isClosing: boolean;
  /** The first call loads the compiler's code. */
  builds(): Promise<DeviceBuilds>;
}

/** `built` is the image of a module, which is loaded already; the `image` of a kernel is to be loaded. */
type BuiltReport = ModuleReport & Pick<BuildResult, 'symbolOf'> & { readonly image?: Uint8Array; readonly built?: Uint8Array };

interface LoadedModule {
  /** Names it to the device. */
  readonly number: number;
  readonly build: BuildSpec;
  readonly loading: Promise<BuiltReport>;
}

/** The image of a kernel whose module is loaded already. */
const NO_IMAGE: Uint8Array = new Uint8Array(0);
/** A library's call has no blocks of the launch's shape. */
const ANY_SHAPE: KernelLimits = {
  maxThreadsPerBlock: Number.MAX_SAFE_INTEGER,
  maxSharedBytes: Number.MAX_SAFE_INTEGER,
  maxCooperativeBlocks: 0,
  blocksAtOnce: [],
};
/** Calls whose faults the CPU device reports by their lines. */
const SHUFFLE = /\bshfl\b/;

/** The capability that a device lacks when it does not support a call. */
const CAPABILITIES: Partial<Record<ControlName, string>> = {
  setPeer: 'peer access',
  divide: 'partitions',
  exportEvent: 'interprocess',
  openEvent: 'interprocess',
  exportMemory: 'interprocess',
  openMemory: 'interprocess',
  elapsed: 'timing',
};

/** Calls whose failures have errors of their own. */
const REFUSALS: Partial<Record<ControlName, (error: unknown) => unknown>> = {
  openEvent: asUnopened,
  openMemory: asUnopened,
  telemetry: asUntold,
};

let lastModule = 0;

/** One thread that uses the device, in the device's worker: its builds, modules and host memory. */
export class WorkerClient {
  readonly #device: ControlledDevice;
  readonly #send: Send;
  readonly #building: Set<number> = new Set();
  /** By the numbers that the thread chose. */
  readonly #modules: Map<number, LoadedModule> = new Map();
  /** Of kernels whose faults have places in the source, by kernel handle: the image's file, and its source. */
  readonly #images: Map<number, { readonly file: string; readonly build: Build }> = new Map();
  /** By memory handle. */
  readonly #binding: Map<number, VariableSpec> = new Map();
  /** Buffers that the device writes into and that the thread has not collected; undefined where the allocation failed. */
  readonly #lent: Map<number, ArrayBuffer | undefined> = new Map();
  /** Host memory that is registered for it. */
  readonly #registered: Set<number> = new Set();
  /** The partitions that it has made, by id. */
  readonly #partitions: Set<number> = new Set();

  constructor(device: ControlledDevice, send: Send) {
    this.#device = device;
    this.#send = send;
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case 'build':
        void this.#build(message.handle, message.build, message.module);
        break;
      case 'module':
        void this.#loadModule(message.module, message.build);
        break;
      case 'variable':
        void this.#bindVariable(message.handle, message.variable);
        break;
      case 'register':
        this.#register(message.handle, message.buffer, message.byteOffset, message.byteLength, message.isLocked);
        break;
      case 'lend':
        this.#lend(message.handle, message.byteLength);
        break;
      case 'collect':
        this.#collect(message.handle);
        break;
      case 'ask':
        this.#answer(message.id, message.name, message.args);
        break;
      case 'locate':
        void this.#locate(message.id, message.handle, message.places);
        break;
      case 'unregister':
        this.#unregister(message.handle);
    }
  }

  /** Call it when the device closes: the channel ends after the queued records, and launches of these kernels would wait forever. */
  failBuilds(): void {
    const { binding, channel } = this.#device;
    for (const handle of this.#building) binding.failKernel(channel, handle, Status.STATE);
    for (const [handle, { byteLength, failure }] of this.#binding) binding.failVariable(channel, handle, byteLength, failure);
  }

  /** The thread has ended or has closed the device. Resolves when its streams have ended and its memory is freed; its kernels stay. */
  async left(owner: number): Promise<void> {
    const { binding, channel } = this.#device;
    await binding.ownerLeft(channel, owner);
    if (this.#device.isClosing) return;
    for (const handle of this.#registered) this.#release(handle, false);
    this.#registered.clear();
    this.#lent.clear();
    try {
      for (const id of this.#partitions) binding.endPartition(channel, id);
    } catch {
      // The device is lost, and they with it.
    }
  }

  /** Builds and loads a kernel. Meanwhile the channel parks the streams that launch it. */
  async #build(handle: number, spec: Build, module: number | undefined): Promise<void> {
    this.#building.add(handle);
    try {
      if (this.#planned(handle, spec)) return;
      const report: BuiltReport = module === undefined ? await this.#buildImage(spec) : await this.#ofModule(spec, module);
      const { image = NO_IMAGE, built = image, compiler, fromCache, ms, symbolOf } = report;
      if (this.#device.isClosing) return;
      const { isBounded, isLaunching = false } = spec;
      const entry = spec.path === undefined ? spec.entry : symbolOf(spec.path);
      // On a GPU, CUDA itself handles the assertions and device launches of CUDA C++ source.
      const isChecked = spec.isChecked || ((spec.isAsserting === true || isLaunching) && this.#device.isOnCpu);
      const limits = this.#device.binding.installKernel(this.#device.channel, handle, {
        image,
        entry,
        isBounded,
        isLaunching,
        isChecked,
        module: this.#numberOf(module),
      });
      this.#keepImage(handle, built, spec, module);
      this.#send({ type: 'built', handle, compiler, fromCache, ms, limits });
    } catch (error) {
      if (this.#device.isClosing) return;
      // Send the reason first: the owner needs it when it sees the failed launches.
      const told = asMillraceError(error, `Kernel ${spec.name} does not load`);
      this.#send({ type: 'buildFailed', handle, error: encodeError(told) });
      this.#device.binding.failKernel(this.#device.channel, handle, told instanceof UnavailableError ? Status.UNAVAILABLE : Status.COMPILE);
    } finally {
      this.#building.delete(handle);
    }
  }

  /** Whether a library takes the place of the kernel. It has refused nothing that the kernel does not do, so only a lost device fails here. */
  #planned(handle: number, { plan, isOfLibrary }: Build): boolean {
    if (plan === undefined || this.#device.isClosing) return false;
    const startMs = performance.now();
    try {
      const { name, version } = this.#device.binding.installPlan(this.#device.channel, handle, plan);
      this.#send({
        type: 'built',
        handle,
        compiler: `${name} ${version}`,
        fromCache: false,
        ms: performance.now() - startMs,
        limits: ANY_SHAPE,
      });
      return true;
    } catch (error) {
      if (isOfLibrary === true || (error as NativeFailure).status === Status.DEVICE_LOST) throw error;
      return false;
    }
  }

  #keepImage(handle: number, image: Uint8Array, kernel: Build, module: number | undefined): void {
    const build = module === undefined ? kernel : (this.#modules.get(module) as LoadedModule).build;
    if (!this.#device.findsRaces && !(this.#device.isOnCpu && 'source' in build && SHUFFLE.test(build.source))) return;
    this.#images.set(handle, { file: Buffer.from(image).toString(), build });
  }

  /** Loads a module. Builds of its kernels and bindings of its variables wait for it. */
  async #loadModule(module: number, spec: BuildSpec): Promise<void> {
    const number = ++lastModule;
    const loading = this.#load(number, spec);
    this.#modules.set(module, { number, build: spec, loading });
    try {
      const { compiler, fromCache, ms } = await loading;
      this.#send({ type: 'moduleLoaded', module, compiler, fromCache, ms });
    } catch (error) {
      if (!this.#device.isClosing) this.#send({ type: 'moduleFailed', module, error: encodeError(error) });
    }
  }

  async #load(module: number, spec: BuildSpec): Promise<BuiltReport> {
    const { image, symbolOf, compiler, fromCache, ms } = await this.#buildImage(spec);
    if (!this.#device.isClosing) {
      try {
        this.#device.binding.loadModule(this.#device.channel, module, image);
      } catch (error) {
        throw asMillraceError(error, `The module of kernels ${spec.name} does not load`);
      }
    }
    return { compiler, fromCache, ms, symbolOf, built: image };
  }

  async #buildImage(spec: Build): Promise<BuildResult> {
    const { builder } = await this.#device.builds();
    return builder.build(spec);
  }

  #loaded(module: number): Promise<BuiltReport> {
    return (this.#modules.get(module) as LoadedModule).loading;
  }

  /** The image of a module is the same for every list of parameters, so the kernel's own list is compared beside its build. */
  async #ofModule(spec: Build, module: number): Promise<BuiltReport> {
    const { builder } = await this.#device.builds();
    // The module may have been built without this kernel.
    const able = builder.checked(spec);
    const compared = builder.checkParameters(able as BuildSpec);
    // An error of the source counts first, because it is the error of every kernel.
    compared.catch(() => {});
    const report = await this.#loaded(module);
    await compared;
    return report;
  }

  /** The device's number of the module. */
  #numberOf(module: number | undefined): number | undefined {
    return module === undefined ? undefined : (this.#modules.get(module) as LoadedModule).number;
  }

  /** Binds a variable to a memory handle. Meanwhile the channel parks the streams that name the handle. */
  async #bindVariable(handle: number, variable: VariableSpec): Promise<void> {
    const { module, byteLength, failure } = variable;
    this.#binding.set(handle, variable);
    try {
      await this.#loaded(module);
      if (this.#device.isClosing) return;
      this.#bind(handle, variable);
      this.#send({ type: 'variableBound', handle });
    } catch (error) {
      if (this.#device.isClosing) return;
      this.#send({ type: 'variableFailed', handle, error: encodeError(error) });
      this.#device.binding.failVariable(this.#device.channel, handle, byteLength, failure);
    } finally {
      this.#binding.delete(handle);
    }
  }

  #bind(handle: number, { module, name, byteLength }: VariableSpec): void {
    let found: number;
    try {
      found = this.#device.binding.bindVariable(this.#device.channel, handle, this.#numberOf(module) as number, name, byteLength);
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

  #register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void {
    const { binding, channel, isOnCpu } = this.#device;
    this.#registered.add(handle);
    try {
      binding.registerHost(channel, handle, new Uint8Array(buffer, byteOffset, byteLength), isLocked && !isOnCpu);
    } catch (error) {
      this.#send({
        type: 'registerFailed',
        handle,
        error: encodeError(asMillraceError(error, `${byteLength} bytes cannot be page-locked`)),
      });
      this.#registerUnlocked(handle, buffer, byteOffset, byteLength);
    }
  }

  /** Copies of pageable memory are slower but correct. Never fails: it may be another thread's mistake, and all use this worker. */
  #registerUnlocked(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number): void {
    const { binding, channel } = this.#device;
    try {
      binding.registerHost(channel, handle, new Uint8Array(buffer, byteOffset, byteLength), false);
    } catch {
      // Such as a buffer that is detached or too short: copies of it fail as out of bounds.
      binding.registerHost(channel, handle, new Uint8Array(1), false);
    }
  }

  #unregister(handle: number): void {
    this.#registered.delete(handle);
    this.#release(handle, false);
    this.#send({ type: 'unregistered', handle });
  }

  #release(handle: number, isKept: boolean): void {
    try {
      this.#device.binding.unregisterHost(this.#device.channel, handle, isKept);
    } catch {
      // The driver does not unlock the pages, so the device keeps them until it closes.
    }
  }

  #lend(handle: number, byteLength: number): void {
    const bytes = bytesOf(byteLength);
    if (bytes !== undefined) this.#device.binding.adviseHugePages(bytes);
    this.#lent.set(handle, bytes?.buffer);
    this.#registered.add(handle);
    // Without memory, register one byte: copies into it fail as out of bounds.
    this.#device.binding.registerHost(this.#device.channel, handle, bytes ?? new Uint8Array(1), false);
  }

  #collect(handle: number): void {
    const buffer = this.#lent.get(handle);
    this.#lent.delete(handle);
    this.#registered.delete(handle);
    this.#release(handle, true);
    if (buffer !== undefined) {
      this.#send({ type: 'collected', handle, buffer }, [buffer]);
      return;
    }
    const error = new OutOfMemoryError('ERR_MILLRACE_MEMORY', 'There is not enough host memory for the result of the read.', 0, 0);
    this.#send({ type: 'notLent', handle, error: encodeError(error) });
  }

  /** Never fails: an error names the race or the calls without their lines. */
  async #locate(id: number, handle: number, places: FaultPlaces): Promise<void> {
    const image = this.#images.get(handle);
    const reason = 'the image is not known';
    const source: FaultSource =
      image === undefined
        ? { lines: [undefined, undefined], reason, variable: undefined }
        : await this.#faultSource(image.file, image.build, places);
    this.#send({ type: 'located', id, source });
  }

  async #faultSource(file: string, build: Build, places: FaultPlaces): Promise<FaultSource> {
    const { builder, faultSource } = await this.#device.builds();
    return faultSource(file, () => builder.sourceOf(build), places);
  }

  #answer(id: number, name: ControlName, args: readonly unknown[]): void {
    try {
      const call = this.#device.binding[name] as (channel: number, ...args: readonly unknown[]) => unknown;
      const value = call(this.#device.channel, ...args);
      if (name === 'divide') for (const partition of (value as DivisionReport).partitions) this.#partitions.add(partition.id);
      if (name === 'endPartition') this.#partitions.delete(args[0] as number);
      this.#send({ type: 'answered', id, value });
    } catch (error) {
      const refused = REFUSALS[name]?.(error) ?? error;
      this.#send({ type: 'refused', id, error: encodeError(asMillraceError(refused, `The call ${name} failed`, CAPABILITIES[name])) });
    }
  }
}

/** An error about a variable that only the compiled image shows. */
function badVariable(message: string): CompileError {
  return new CompileError('ERR_MILLRACE_COMPILE', `K705: ${message}`, message, [{ code: 'K705', line: 1, column: 1, message }]);
}

/** Undefined if the allocation fails. */
function bytesOf(byteLength: number): Uint8Array<ArrayBuffer> | undefined {
  try {
    return unfilledBytes(byteLength);
  } catch {
    return undefined;
  }
}
