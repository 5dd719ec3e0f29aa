// Devices of a test.
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import { Device } from '../core/api/device.js';
import { DeviceContext } from '../core/api/device-context.js';
import { deviceInfo, type DeviceName } from '../core/api/device-info.js';
import { DeviceCore } from '../core/device/device-core.js';
import type { Ordering } from '../core/device/stream-context.js';
import { checkOrdering } from '../core/api/stream-options.js';
import { MAX_PARAMETER_BYTES, MAX_PENDING } from '../protocol/protocol.gen.js';
import type { NativeDeviceInfo } from '../protocol/reports.js';
import { type CopyMs, TestChannel } from './channel.js';
import type { TestClock } from './clock.js';
import { checkMs, type TestKernel } from './kernels.js';
import { groupOf } from './device-group.js';

const GIB = 2 ** 30;

/** Options of `createTestDevice`. */
export interface TestDeviceOptions {
  /** The clock of the device. Devices that are used in one pipeline need the same clock. */
  readonly clock: TestClock;
  /**
   * The kernels that the device can launch, made by `testKernel`. Launches of other kernels fail with an UnavailableError. Default: none.
   */
  readonly kernels?: readonly TestKernel[];
  /** Virtual milliseconds of a copy from the host to the device, as a number or by its bytes. Default 0. */
  readonly uploadMs?: CopyMs;
  /** Virtual milliseconds of a copy from the device to the host, as a number or by its bytes. Default 0. */
  readonly downloadMs?: CopyMs;
  /** Bytes of device memory. Default 2^30. */
  readonly memoryBytes?: number;
  /** As in `openDevice`. Default 2^20. */
  readonly maxPending?: number;
  /** As in `openDevice`. Default 'tracked'. */
  readonly ordering?: Ordering;
}

/**
 * Makes a device for a test: a CPU device by its `info`, without a thread and without native code. Streams, events, arrays, pinned memory,
 * ordering, failures and limits are those of a real device. Copies and fills move real bytes. Kernels are JavaScript functions, and
 * operations take the virtual time that the options give. Any number of streams run at once. Operations without a duration run in the next
 * turn of the event loop; operations with one wait for `clock.advance` or `clock.run`, and `close` waits for them.
 *
 * Variables of modules, `nativeHandle`, and memory and events for other processes throw an UnsupportedError or StateError. Throws
 * ArgumentError for a bad option.
 * @example const device = createTestDevice({ clock, uploadMs: 1, kernels: [testKernel(blur, { ms: 4 })] });
 */
export function createTestDevice(opts: TestDeviceOptions): Device {
  if (typeof opts !== 'object' || opts === null) throw badArgument('opts', opts, `The options (${show(opts)}) are not an object.`);
  const { clock, kernels = [], uploadMs = 0, downloadMs = 0, ordering = 'tracked' } = opts;
  const group = groupOf(clock);
  if (!Array.isArray(kernels) || kernels.some((entry) => (entry as Partial<TestKernel> | null)?.opts === undefined))
    throw badArgument('kernels', kernels, 'kernels is not a list of what testKernel returns.');
  if (typeof uploadMs !== 'function') checkMs('uploadMs', uploadMs);
  if (typeof downloadMs !== 'function') checkMs('downloadMs', downloadMs);
  checkOrdering(ordering);
  const info: NativeDeviceInfo = {
    ordinal: group.made++,
    name: 'test device',
    totalMemoryBytes: checkInteger('memoryBytes', opts.memoryBytes ?? GIB, 1),
    computeCapability: [0, 0],
    multiprocessors: 1,
    maxThreadsPerBlock: 1024,
    maxBlock: [1024, 1024, 64],
    maxGrid: [2 ** 31 - 1, 65535, 65535],
    maxSharedBytes: 48 * 1024,
    maxParameterBytes: MAX_PARAMETER_BYTES,
    // A test device runs no CUDA C++.
    textureLimits: [],
    warpSize: 32,
    priorityRange: [0, -5],
    libraries: [],
  };
  const maxPending = checkInteger('maxPending', opts.maxPending ?? MAX_PENDING, 1, MAX_PENDING);
  const channel = new TestChannel(group, { info, maxPending, kernels, uploadMs, downloadMs });
  const id: DeviceName = `cpu:${info.ordinal}`;
  const core = new DeviceCore(id, channel, group.progress, group.tracker, group.clock.core);
  return new Device(
    new DeviceContext(core, {
      info: deviceInfo('cpu', info, () => []),
      ordering,
      isShared: () => false,
      release: () => undefined,
      ends: () => undefined,
      destroying: () => undefined,
      hung: () => undefined,
    }),
  );
}
