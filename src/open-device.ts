// Opens devices. This is the only file that imports the addon, the workers and the core.
//
// A thread has one environment: the addon, one record block, and one CompletionPolling for all its devices. A worker enumerates the
// machine's devices, because the driver may take long to answer; this file chooses one of them.
import { availableParallelism } from 'node:os';
import { checkOptions, type DeviceSpec, imagesFolder, type Opening, type OpenOptions, type Settings, SETTINGS } from './open-options.js';
import type { BackendName, BackendReport, NativeDeviceInfo } from './protocol/reports.js';
import { Device } from './core/api/device.js';
import { DeviceContext } from './core/api/device-context.js';
import { deviceInfo, type DeviceInfo, type DeviceName } from './core/api/device-info.js';
import { warmUp } from './compiler/definitions/warm-up.js';
import { DeviceCore } from './core/device/device-core.js';
import { AccessTracker } from './core/ordering/access-tracker.js';
import type { Ordering } from './core/device/stream-context.js';
import { refuseSurplus, show } from './core/base/arguments.js';
import { checkDeviceToken, type DeviceToken } from './core/base/device-token.js';
import { AbortError, DeviceLostError, StateError, UnavailableError } from './core/base/errors.js';
import { checkOptionNames } from './core/base/option-names.js';
import { CompletionPolling, longestPoll } from './core/waits/completion-polling.js';
import { checksByDefault, MOST_SEED, refusedCheck } from './core/api/check-options.js';
import { scheduleCode } from './core/api/schedule.js';
import { checkOrdering } from './core/api/stream-options.js';
import { devicesChannel, isTraced, type OpenMessage, openTrace, tracePromise } from './core/base/trace.js';
import { diagnoseWait } from './core/waits/wait-diagnosis.js';
import { checkWaitOptions, waitWith } from './core/waits/wait.js';
import type { Binding } from './native/binding.js';
import { loadBinding } from './native/load.js';
import { Encoder } from './protocol/encoder.js';
import { MAX_PENDING } from './protocol/protocol.gen.js';
import { DeviceWorkerHandle } from './workers/device-worker-handle.js';
import type { OpenRequest } from './workers/messages.js';
import { nameForTools } from './workers/tool-names.js';
import { MachineDevices } from './workers/machine-devices.js';
import { notOpen, openSharedChannel } from './workers/shared-device.js';
import type { WorkerChannel } from './workers/worker-channel.js';

interface Environment {
  readonly binding: Binding;
  readonly encoder: Encoder;
  readonly progress: CompletionPolling;
  readonly tracker: AccessTracker;
  readonly machine: MachineDevices;
  readonly cores: Set<DeviceCore>;
}

/** An open or opening device. `users` counts the `Device` objects of it that are not closed. */
interface Entry extends Settings {
  readonly context: Promise<DeviceContext>;
  users: number;
}

/** How long `openDevice` waits for a device that is being closed. A closing device drains its streams, which may never end. */
const CLOSING_MS = 5000;

/** A device that is being closed. */
interface Ending {
  readonly core: DeviceCore;
  /** Never rejects. */
  readonly closed: Promise<void>;
}

let environment: Environment | undefined;
const entries: Map<DeviceName, Entry> = new Map();
/** Devices that other threads opened, by channel. */
const sharedEntries: Map<number, Entry> = new Map();
/** Their channels in this thread. Each stays until its last stream here has ended. */
const sharedChannels: Map<number, WorkerChannel> = new Map();
/** The devices that this thread opened itself. */
const openedHere: WeakMap<DeviceCore, Entry> = new WeakMap();
/** Devices that are being closed: each is opened again only afterwards. `openDevice` does not wait for a destroyed device. */
const endings: Map<DeviceName, Ending> = new Map();
/** The error with which the last `destroy` of the device in this thread rejected, because a kernel did not end. */
const hung: Map<DeviceName, DeviceLostError> = new Map();

/**
 * Lists the devices of this machine, GPUs first, then the CPU device, without opening them: `cuDeviceGetCount`,
 * `cupy.cuda.runtime.getDeviceCount()`, `wp.get_devices()`. Rejects with UnavailableError if the native addon does not load.
 * @example for (const { id, name } of await listDevices()) console.log(id, name);
 */
export async function listDevices(): Promise<readonly DeviceInfo[]> {
  if (arguments.length > 0) refuseSurplus('listDevices', arguments, 0);
  const { machine } = getEnvironment();
  const backends = await machine.backends();
  await machine.release();
  return candidates(backends).map((candidate) => candidate.info);
}

/**
 * Opens a device: `cuDevicePrimaryCtxRetain`, `cupy.cuda.Device(0)`, `wp.get_device('cuda:0')`. `spec` defaults to 'auto', and
 * `device.info.reason` says why that took the CPU device. Opening a device
 * again in the same thread gives another Device object of the same device: the objects share streams and memory (`isSameDevice`), each has
 * its own `close`, and the last `close` closes the device. Options of a later opening must equal those of the first, else it rejects with
 * StateError; an option that is left out matches anything. Rejects with UnavailableError if there is no such device, ArgumentError for a bad argument, AbortError, and DeviceLostError
 * if the device's worker or process ends while it opens. If the device has been closing for 5 s, rejects with a WaitTimeoutError that names the
 * running operations.
 * @example await using device = await openDevice();
 */
export function openDevice(spec: DeviceSpec = 'auto', given: OpenOptions = {}): Promise<Device> {
  return traced(spec, async () => {
    if (arguments.length > 2) refuseSurplus('openDevice', arguments, 2);
    return openNow(spec, given);
  });
}

/** With a subscriber of `millrace:open`. */
function traced(spec: unknown, opens: () => Promise<Device>): Promise<Device> {
  const message: OpenMessage = { device: String(spec) };
  return isTraced(openTrace) ? tracePromise(openTrace, message, opens) : opens();
}

async function openNow(spec: DeviceSpec, given: OpenOptions): Promise<Device> {
  const asked = checkOptions(spec, given);
  const opts: Opening = { ...given, images: imagesFolder(given.images) };
  const { signal } = opts;
  if (signal?.aborted) throw new AbortError(signal);
  const known = asked === 'auto' ? undefined : entries.get(asked);
  if (known !== undefined) return join(known, opts);
  const env = getEnvironment();
  // If this fails, the first kernel definition reports the same error.
  warmUp().catch(() => undefined);
  const backends = await env.machine.backends();
  let candidate: Candidate;
  try {
    candidate = choose(spec, asked, backends);
  } catch (error) {
    // The next call looks for devices again: the reason may have gone.
    env.machine.forget();
    await env.machine.release();
    throw error;
  }
  const { id, backend } = candidate.info;
  const why = spec === 'auto' && backend === 'cpu' ? backends.find(({ name }) => name === 'cuda')?.reason : undefined;
  const refused = backend === 'cpu' ? undefined : refusedCheck(id, opts);
  if (refused !== undefined) {
    await env.machine.release();
    throw refused;
  }
  const opened = entries.get(id);
  // The chosen device was open already, or another call opened it meanwhile.
  if (opened !== undefined) {
    await env.machine.release();
    return join(opened, opts, why);
  }
  const { ordering = 'tracked', maxPending = MAX_PENDING, guard = checksByDefault(candidate.info), racecheck = false } = opts;
  const { memoryLimitBytes, seed, threads, schedule = 'auto', isolation = 'thread', launchTimeoutMs } = opts;
  const images = opts.images ?? imagesFolder(process.env['MILLRACE_IMAGES'] || undefined);
  const checked = { ordering, maxPending, guard, memoryLimitBytes, racecheck, seed, threads };
  const chosen: Settings = { ...checked, schedule, images, isolation, launchTimeoutMs };
  const entry: Entry = { context: openIn(env, candidate, chosen), ...chosen, users: 0 };
  entries.set(id, entry);
  entry.context.catch(() => forget(entries, id, entry));
  return join(entry, opts, why);
}

/**
 * Opens a device that another thread of this process has open, by the token of `device.share()`. The new Device has its own streams. Its
 * `close` closes the streams of this thread and frees the memory that this thread did not dispose. When the thread that opened the device
 * closes it or ends, the new Device is lost. In the thread that opened the device, the result is that of `openDevice`. No counterpart in
 * CUDA, whose contexts belong to all threads of a process.
 *
 * Rejects with ArgumentError for a value that is not a token of this process, DeviceLostError if the device is no longer open, and
 * AbortError. The main thread forwards the request, so its event loop must not be blocked meanwhile.
 * @example await using device = await openShared(token);
 */
export function openShared(token: DeviceToken, opts: Pick<OpenOptions, 'signal'> = {}): Promise<Device> {
  return traced('shared', async () => {
    if (arguments.length > 2) refuseSurplus('openShared', arguments, 2);
    return openOfOther(token, opts);
  });
}

async function openOfOther(token: DeviceToken, opts: Pick<OpenOptions, 'signal'>): Promise<Device> {
  const { address, ordering } = checkDeviceToken(token);
  checkOrdering(ordering);
  checkOptionNames(opts, ['signal']);
  if (opts.signal !== undefined) checkWaitOptions({ signal: opts.signal });
  if (opts.signal?.aborted) throw new AbortError(opts.signal);
  const env = getEnvironment();
  const own = [...env.cores].find((core) => openedHere.has(core) && core.channel.address.key === address.key);
  if (own?.state === 'open') return join(openedHere.get(own) as Entry, opts);
  if (own !== undefined) throw notOpen(token);
  let entry = sharedEntries.get(address.channel);
  if (entry === undefined) {
    const context = openSharedIn(env, token, () => sharedEntries.get(address.channel) as Entry);
    const settings = {
      maxPending: 0,
      guard: false,
      memoryLimitBytes: undefined,
      racecheck: false,
      seed: undefined,
      threads: undefined,
      schedule: 'auto',
      images: undefined,
      isolation: 'thread',
      launchTimeoutMs: undefined,
    } as const;
    entry = { context, ordering: ordering as Ordering, ...settings, users: 0 };
    sharedEntries.set(address.channel, entry);
    const opening = entry;
    context.catch(() => forget(sharedEntries, address.channel, opening));
  }
  return join(entry, opts);
}

async function join(entry: Entry, opts: Opening, reason?: string): Promise<Device> {
  const { signal } = opts;
  for (const option of SETTINGS) {
    if (opts[option] !== undefined && opts[option] !== entry[option]) throw openOtherwise(option, opts[option], entry[option]);
  }
  entry.users++;
  const device = entry.context.then((context) => new Device(context, reason));
  if (signal === undefined) return device;
  try {
    return await waitWith(device, { signal }, 'the device to open');
  } catch (error) {
    // Close the device as soon as it is open; it stays open if other calls share it.
    device.then((late) => late.close()).catch(() => undefined);
    throw error;
  }
}

function openOtherwise(option: string, asked: unknown, open: unknown): StateError {
  return new StateError(
    'ERR_MILLRACE_STATE',
    `The device is open with ${option} ${show(open)}; it cannot be opened with ${show(asked)} as well. Close it first, or open another one; MILLRACE_CPU_DEVICES=2 gives the CPU two.`,
  );
}

async function openIn(env: Environment, candidate: Candidate, settings: Settings): Promise<DeviceContext> {
  const { info, native } = candidate;
  const { id } = info;
  const { ordering, guard, racecheck, schedule, memoryLimitBytes = 0, seed = MOST_SEED + 1, ...others } = settings;
  const { threads = 0, launchTimeoutMs = 0 } = settings;
  const checks = { isGuarded: guard, findsRaces: racecheck, memoryLimitBytes, seed, threads, launchTimeoutMs };
  const channel = await openChannel(env, info, native, { ...others, ...checks, schedule: scheduleCode(schedule) });
  const left = (core: DeviceCore): void => {
    if (endings.get(id)?.core === core) endings.delete(id);
  };
  const opened = entries.get(id) as Entry;
  const context = contextOn(env, channel, ordering, opened, {
    forget: (entry) => forget(entries, id, entry),
    ends: (core, closed) => {
      const ended = closed.catch(() => undefined).then(() => left(core));
      endings.set(id, { core, closed: Promise.race([ended, core.lost.then(() => undefined)]) });
    },
    destroying: left,
    hung: (error) => hung.set(id, error),
  });
  openedHere.set(context.core, opened);
  return context;
}

async function openSharedIn(env: Environment, token: DeviceToken, entryOf: () => Entry): Promise<DeviceContext> {
  const { channel: id } = token.address;
  // The device's worker counts a thread that opens it again as a new one.
  await sharedChannels.get(id)?.ended;
  const channel = await openSharedChannel(env.binding, env.encoder, token);
  sharedChannels.set(id, channel);
  void channel.ended.then(() => {
    if (sharedChannels.get(id) === channel) sharedChannels.delete(id);
  });
  return contextOn(env, channel, token.ordering as Ordering, entryOf(), {
    forget: (entry) => forget(sharedEntries, id, entry),
    ends: () => undefined,
    destroying: () => undefined,
    hung: () => undefined,
  });
}

/** The list of open devices that a device is in. */
interface Listing {
  forget(entry: Entry): void;
  ends(core: DeviceCore, closed: Promise<void>): void;
  destroying(core: DeviceCore): void;
  hung(error: DeviceLostError): void;
}

function contextOn(env: Environment, channel: WorkerChannel, ordering: Ordering, entry: Entry, listing: Listing): DeviceContext {
  // `channel.info` is more complete than the enumerated info; for example, it has the priority range.
  const info = shownInfo(channel.backend, channel.info);
  const core = new DeviceCore(info.id, channel, env.progress, env.tracker);
  core.arena.prepare(info.backend === 'cuda');
  env.cores.add(core);
  const context = new DeviceContext(core, {
    info,
    ordering,
    isShared: () => entry.users > 1,
    release: () => {
      if (--entry.users === 0 || core.state !== 'open') listing.forget(entry);
    },
    ends: (closed) => {
      void closed.catch(() => undefined).then(() => env.cores.delete(core));
      listing.ends(core, closed);
    },
    destroying: () => {
      env.cores.delete(core);
      listing.destroying(core);
    },
    hung: (error) => listing.hung(error),
  });
  void core.lost.then(() => listing.forget(entry));
  if (devicesChannel.hasSubscribers) devicesChannel.publish({ device: info.id, state: 'open' });
  return context;
}

async function openChannel(env: Environment, info: DeviceInfo, native: NativeDeviceInfo, request: OpenRequest): Promise<WorkerChannel> {
  const ending = endings.get(info.id);
  try {
    if (ending !== undefined) {
      const points = Array.from(ending.core.timelines, (timeline) => timeline.here());
      await waitWith(ending.closed, { timeoutMs: CLOSING_MS }, `device ${info.id} to close`, [], () => diagnoseWait(points));
    }
    if (request.isolation === 'process') {
      const apart = DeviceWorkerHandle.openApart(env.binding, info.backend, native, request, env.encoder);
      await Promise.allSettled([apart, env.machine.release()]);
      return await apart;
    }
    const thread = await env.machine.thread();
    return await thread.open(info.backend, native, request, env.encoder);
  } catch (error) {
    // The device may have been removed, so enumerate again.
    env.machine.forget();
    await env.machine.release();
    throw error instanceof DeviceLostError && error.reason === 'hung' ? naming(error, hung.get(info.id)) : error;
  }
}

/** The error of a GPU that does not open because a kernel does not end, with the kernel if this thread knows it. */
function naming(refusal: DeviceLostError, destroyed: DeviceLostError | undefined): DeviceLostError {
  if (destroyed === undefined) return refusal;
  const { device, stream, operation, message } = destroyed;
  return new DeviceLostError(refusal.code, `${refusal.message}. ${message}`, 'hung', { device, stream, operation, cause: destroyed });
}

function forget<K>(map: Map<K, Entry>, key: K, entry: Entry): void {
  if (map.get(key) === entry) map.delete(key);
}

function getEnvironment(): Environment {
  environment ??= makeEnvironment();
  return environment;
}

function makeEnvironment(): Environment {
  const binding = loadBinding();
  const encoder = new Encoder();
  const cores: Set<DeviceCore> = new Set();
  const progress = new CompletionPolling((on) => binding.refPort(on), longestPoll(availableParallelism()));
  binding.openPort(encoder.block, () => {
    progress.wake();
    for (const core of cores) {
      core.checkLost();
      if (core.state === 'closed' || core.state === 'lost') cores.delete(core);
    }
  });
  nameForTools(binding, encoder);
  // A timer that does not keep the event loop alive looks for failures that no code awaits; this is the last look.
  process.on('beforeExit', () => {
    for (const core of cores) core.tellUnasked();
  });
  return { binding, encoder, progress, tracker: new AccessTracker(), machine: new MachineDevices(binding), cores };
}

// ── Choice of the device ──

interface Candidate {
  readonly info: DeviceInfo;
  readonly native: NativeDeviceInfo;
}

function candidates(backends: readonly BackendReport[]): Candidate[] {
  return backends.flatMap(({ name, devices }) => devices.map((native) => ({ native, info: shownInfo(name, native) })));
}

function shownInfo(backend: BackendName, native: NativeDeviceInfo): DeviceInfo {
  return deviceInfo(backend, native, () => getEnvironment().binding.libraries());
}

function choose(spec: DeviceSpec, name: DeviceName | 'auto', backends: readonly BackendReport[]): Candidate {
  const all = candidates(backends);
  const cuda = all.find((candidate) => candidate.info.backend === 'cuda');
  if (name === 'auto') {
    const chosen = cuda ?? all[0];
    if (chosen !== undefined) return chosen;
  }
  const found = all.find((candidate) => candidate.info.id === name);
  if (found !== undefined) return found;
  const report = backends.find((backend) => name.startsWith(backend.name));
  const reason = report?.reason || `this machine has ${all.map((candidate) => candidate.info.id).join(', ')}`;
  const help =
    report !== undefined && report.help.length > 0
      ? report.help
      : [
          'listDevices() gives the devices of this machine.',
          ...(name.startsWith('cpu') ? ['MILLRACE_CPU_DEVICES sets the number of CPU devices.'] : []),
        ];
  throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `Device ${show(spec)} is not available: ${reason.replace(/\.$/, '')}.`, help);
}
