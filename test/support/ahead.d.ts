// Public names that the specification has and the built package may not have yet, so that tests of them compile. A name
// that has arrived is deleted here; the file goes when it is empty.
import type {
  DeviceEvent,
  Device,
  DType,
  OperationInfo,
  Stream,
  WaitOptions,
  MillraceError,
  StateError,
  Operation,
  StreamSnapshot,
} from 'millrace';

type AxisIndex = number | readonly [start?: number | undefined, stop?: number | undefined, step?: number | undefined] | undefined;

declare module '../../dist/index.js' {
  export function elapsed(start: DeviceEvent, end: DeviceEvent, opts?: WaitOptions): Promise<number>;
  export function synchronize(opts?: WaitOptions): Promise<void>;
  export function getDefaultDevice(): Device;
  export function setDefaultDevice(device: Device): void;
  export function recordEvent(event?: DeviceEvent): DeviceEvent;
  export function waitEvent(event: DeviceEvent): Operation;
  export function waitStream(stream: Stream): Operation;
  export class EventTimingError extends StateError {
    readonly reason: 'timing-off' | 'never-recorded' | 'other-device';
  }
  export interface HazardSite {
    readonly stream: string;
    readonly operation: OperationInfo;
    readonly access: 'read' | 'write';
    readonly at: string;
  }
  export class StreamHazardError extends MillraceError {
    readonly array: string;
    readonly madeAt: string;
    readonly first: HazardSite;
    readonly second: HazardSite;
  }
}
declare module '../../dist/core/array.js' {
  interface DeviceArray<D extends DType> {
    view(...index: readonly AxisIndex[]): DeviceArray<D>;
    transpose(axes?: readonly number[]): DeviceArray<D>;
    clone(stream?: Stream): DeviceArray<D>;
    readonly nativePointer: bigint;
    ipcHandle(): Promise<Uint8Array<ArrayBuffer>>;
  }
}
declare module '../../dist/core/copy.js' {
  interface CopyOptions {
    readonly transfer?: boolean;
  }
}
declare module '../../dist/core/event.js' {
  interface DeviceEvent {
    readonly timing: boolean;
    ipcHandle(): Promise<Uint8Array<ArrayBuffer>>;
  }
}
declare module '../../dist/core/pool.js' {
  interface MemoryPool {
    setReleaseThreshold(value: number): Promise<void>;
    releaseThresholdBytes(): Promise<number>;
    trim(keepBytes?: number): Promise<void>;
    resetHighWater(): Promise<void>;
  }
}
declare module '../../dist/core/peers.js' {
  interface PeerAccess {
    isGranted(peer: Device, what?: 'memory' | 'pool'): Promise<boolean>;
    grant(peer: Device, what?: 'memory' | 'pool'): Promise<void>;
    revoke(peer: Device, what?: 'memory' | 'pool'): Promise<void>;
  }
}
declare module '../../dist/core/operation.js' {
  interface OperationTiming {
    readonly deviceMs?: number;
  }
}
declare module '../../dist/core/inspect.js' {
  interface StreamSnapshot {
    readonly current?: OperationInfo;
    readonly waitingFor?: { readonly kind: string; readonly stream?: string; readonly operation?: OperationInfo; readonly sinceMs: number };
  }
}
declare module '../../dist/core/errors.js' {
  interface WaitTimeoutError {
    readonly waitingFor: readonly StreamSnapshot[];
  }
}
