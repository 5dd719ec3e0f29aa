// Calls that an owner sends to its device's worker, because the driver may take long to answer. Each is a function of the
// addon, called with the device's channel before these parameters. Failures are returned as errors of the library.
import type { PeerRoute, PeerWhat } from '../../protocol/protocol.gen.js';
import type { DivisionReport, GpuReport, PeerReport, PoolReport } from '../../protocol/reports.js';

export interface ControlCalls {
  poolStats(): PoolReport;
  /** Bytes the pool keeps when nothing uses them. */
  setReleaseThreshold(bytes: number): void;
  releaseThreshold(): number;
  trimPool(keepBytes: number): void;
  resetHighWater(): void;
  /** Whether the device with this ordinal, of the same backend and open or not, may access this device's memory. */
  peerState(ordinal: number, what: PeerWhat): PeerReport;
  /** Returns false if kernels that were issued before may still use an access that is to end: call it again until it is true. */
  setPeer(ordinal: number, what: PeerWhat, isGranted: boolean): boolean;
  /** Tests the route between this device and another open one, named by its channel. Meanwhile copies between them wait on the device. */
  probePeer(channel: number): PeerRoute;
  /** Makes a partition for each share of multiprocessors or threads; 0 is the rest. */
  divide(shares: Float64Array): DivisionReport;
  /** Ends a partition without streams, by its id. */
  endPartition(id: number): void;
  /** Milliseconds between two complete timing events, by handle. */
  elapsed(start: number, end: number): number;
  /** Compares the device's clock with the host's, for recorded timelines. */
  alignClocks(): void;
  /** What NVML tells of the GPU. */
  telemetry(): GpuReport;
  /** The handle with which another process opens an interprocess event; binds the event if it was never recorded. */
  exportEvent(eventHandle: number): Uint8Array<ArrayBuffer>;
  openEvent(eventHandle: number, ipc: Uint8Array): void;
  exportMemory(memory: number): Uint8Array<ArrayBuffer>;
  /** Binds another process's memory to a handle; a FREE record closes it. */
  openMemory(memory: number, ipc: Uint8Array, byteLength: number): void;
}

export type ControlName = keyof ControlCalls;
