// Every message between an owner and its device's worker. Streams, memory and launches never travel here: they are
// records. What does travel may block the worker and never the owner.
import type { Build, BuildSpec } from '../core/channel/build.js';
import type { BuildReport, ModuleReport, VariableSpec } from '../core/channel/channel.js';
import type { ControlName } from '../core/channel/control.js';
import type { EncodedError } from '../core/base/errors.js';
import type { GrowableSharedBuffer } from '../core/channel/shared-buffer.js';
import type { BackendName, BackendReport, NativeDeviceInfo } from '../protocol/reports.js';

export type ToWorker =
  /** The answer to 'enumerated'; otherwise 'close'. */
  | { readonly type: 'open'; readonly backend: BackendName; readonly info: NativeDeviceInfo; readonly maxPending: number }
  /** Of a module, the number of one that a 'module' message came for. */
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
  /** A buffer of the worker's own, which 'collect' sends to the owner. */
  | { readonly type: 'lend'; readonly handle: number; readonly byteLength: number }
  | { readonly type: 'collect'; readonly handle: number }
  /** A ControlCall; 'answered' or 'refused' follows, by the same id. */
  | { readonly type: 'ask'; readonly id: number; readonly name: ControlName; readonly args: readonly unknown[] }
  | { readonly type: 'unregister'; readonly handle: number }
  /** Runs what is queued, then ends. */
  | { readonly type: 'close' }
  /** Drops what is queued, and ends as soon as nothing runs any more; also after 'close'. */
  | { readonly type: 'destroy' };

export type FromWorker =
  /** First message: asking the driver may take a tenth of a second, so it is asked here. */
  | { readonly type: 'enumerated'; readonly backends: readonly BackendReport[] }
  /** `arena` is for pinned memory, `timeline` the streams' slots; both start on a page and are held by the worker. */
  | {
      readonly type: 'opened';
      readonly channel: number;
      readonly info: NativeDeviceInfo;
      readonly timeline: SharedArrayBuffer;
      readonly arena: GrowableSharedBuffer;
    }
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
  /** There was no memory to lend. */
  | { readonly type: 'notLent'; readonly handle: number; readonly error: EncodedError }
  | { readonly type: 'answered'; readonly id: number; readonly value: unknown }
  | { readonly type: 'refused'; readonly id: number; readonly error: EncodedError }
  /** Last message. */
  | { readonly type: 'closed' };
