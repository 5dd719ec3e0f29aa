// Every message between an owner and its device's worker. Streams, memory and launches are records and are not sent here.
// A message may block the worker; it never blocks the owner.
import type { Build, BuildSpec, FaultPlaces, FaultSource } from '../core/channel/build-spec.js';
import type { BuildReport, ModuleReport, VariableSpec } from '../core/channel/channel.js';
import type { ControlName } from '../core/channel/control.js';
import type { MessagePort } from 'node:worker_threads';
import type { DeviceAddress } from '../core/base/device-token.js';
import type { EncodedError } from '../core/base/errors.js';
import type { GrowableSharedBuffer } from '../core/channel/host-buffers.js';
import type { BackendName, BackendReport, NativeDeviceInfo } from '../protocol/reports.js';

/** How a device is opened. */
export interface OpenRequest {
  readonly maxPending: number;
  readonly isGuarded: boolean;
  /** 0: all that the device has. */
  readonly memoryLimitBytes: number;
  /** Kernels look for races of shared memory. */
  readonly findsRaces: boolean;
  /** A value of the protocol's `Schedule`. */
  readonly schedule: number;
  /** Of a CPU device that chooses its order at random; 2^32: none. */
  readonly seed: number;
  /** Threads of a CPU device that run its kernels; 0: as many as the machine has. */
  readonly threads: number;
  /** The folder of kernels that were built ahead of time. */
  readonly images: string | undefined;
  readonly isolation: 'thread' | 'process';
  /** Of a device in a process of its own: after so long without progress the process ends itself; 0: never. */
  readonly launchTimeoutMs: number;
}

/** For a device in a process of its own: the descriptor of the memory that it shares with its owner, and the number of its channel. */
export interface RemotePlace {
  readonly file: number;
  readonly channel: number;
}

export type ToWorker =
  /** Follows 'enumerated'; 'close' follows instead if no device is opened. */
  | {
      readonly type: 'open';
      readonly backend: BackendName;
      readonly info: NativeDeviceInfo;
      readonly request: OpenRequest;
      readonly remote?: RemotePlace;
    }
  /** `module`: the number that an earlier 'module' message chose, for a kernel of that module. */
  | { readonly type: 'build'; readonly handle: number; readonly build: Build; readonly module: number | undefined }
  | { readonly type: 'module'; readonly module: number; readonly build: BuildSpec }
  | { readonly type: 'variable'; readonly handle: number; readonly variable: VariableSpec }
  | {
      readonly type: 'register';
      readonly handle: number;
      readonly buffer: ArrayBufferLike;
      readonly byteOffset: number;
      readonly byteLength: number;
      readonly isLocked: boolean;
    }
  /** The same to a process, for memory that is a part of the arena or of the file behind it. */
  | {
      readonly type: 'registerShared';
      readonly handle: number;
      readonly offset: number;
      readonly isInArena: boolean;
      readonly byteLength: number;
      readonly isLocked: boolean;
    }
  /** Allocates a buffer in the worker, which 'collect' transfers to the owner. */
  | { readonly type: 'lend'; readonly handle: number; readonly byteLength: number }
  | { readonly type: 'collect'; readonly handle: number }
  /** Where two instructions of a kernel's image are in its source; 'located' follows with the same id. */
  | { readonly type: 'locate'; readonly id: number; readonly handle: number; readonly places: FaultPlaces }
  /** A ControlCall; 'answered' or 'refused' follows with the same id. */
  | { readonly type: 'ask'; readonly id: number; readonly name: ControlName; readonly args: readonly unknown[] }
  | { readonly type: 'unregister'; readonly handle: number }
  /** From a thread that shares the device and leaves it. 'closed' follows when its streams have ended. */
  | { readonly type: 'leave' }
  /** Runs the queued records, then ends. */
  | { readonly type: 'close' }
  /** Drops the queued records and ends as soon as nothing runs; also valid after 'close'. */
  | { readonly type: 'destroy' };

/** Comes by `postMessageToThread`: a thread wants to share the device. `port` is closed if it may not. */
export interface ShareRequest {
  readonly type: 'millrace.share';
  readonly key: string;
  /** What `attach` gave. */
  readonly owner: number;
  readonly port: MessagePort;
}

export type FromWorker =
  /** The first message. The worker enumerates because a driver may need 100 ms to start. */
  | { readonly type: 'enumerated'; readonly backends: readonly BackendReport[] }
  /** `arena` holds pinned memory, `timeline` the streams' slots. Both are page-aligned, and the worker keeps a reference to each. */
  | {
      readonly type: 'opened';
      readonly backend: BackendName;
      readonly maxPending: number;
      readonly channel: number;
      readonly info: NativeDeviceInfo;
      readonly timeline: SharedArrayBuffer;
      readonly arena: GrowableSharedBuffer;
      readonly address: DeviceAddress;
    }
  /** To a thread that shares the device: the one that opened it closes it. */
  | { readonly type: 'ending' }
  | { readonly type: 'openFailed'; readonly error: EncodedError }
  | ({ readonly type: 'built'; readonly handle: number } & BuildReport)
  | { readonly type: 'buildFailed'; readonly handle: number; readonly error: EncodedError }
  | ({ readonly type: 'moduleLoaded'; readonly module: number } & ModuleReport)
  | { readonly type: 'moduleFailed'; readonly module: number; readonly error: EncodedError }
  | { readonly type: 'variableBound'; readonly handle: number }
  | { readonly type: 'variableFailed'; readonly handle: number; readonly error: EncodedError }
  | { readonly type: 'registerFailed'; readonly handle: number; readonly error: EncodedError }
  | { readonly type: 'unregistered'; readonly handle: number }
  | { readonly type: 'collected'; readonly handle: number; readonly buffer: ArrayBuffer }
  /** The allocation of 'lend' failed. */
  | { readonly type: 'notLent'; readonly handle: number; readonly error: EncodedError }
  | { readonly type: 'answered'; readonly id: number; readonly value: unknown }
  | { readonly type: 'located'; readonly id: number; readonly source: FaultSource }
  | { readonly type: 'refused'; readonly id: number; readonly error: EncodedError }
  /** The last message. */
  | { readonly type: 'closed' };
