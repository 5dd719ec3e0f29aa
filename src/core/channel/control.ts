// What an owner asks its device's worker, because the answer may take the driver long. Each is a function of the addon,
// called with the device's channel before these parameters; failures come back as errors of the library.
import type { PeerRoute, PeerWhat } from '../../protocol/protocol.gen.js';
import type { PeerReport, PoolReport } from '../../protocol/reports.js';

export interface ControlCalls {
  poolStats(): PoolReport;
  /** Bytes the pool keeps when nothing uses them. */
  setReleaseThreshold(bytes: number): void;
  releaseThreshold(): number;
  trimPool(keepBytes: number): void;
  resetHighWater(): void;
  /** Of a device of the same backend, open or not, by ordinal: may it reach this device's memory? */
  peerState(ordinal: number, what: PeerWhat): PeerReport;
  setPeer(ordinal: number, what: PeerWhat, isGranted: boolean): void;
  /** Tries the route between this and another open device, by channel; copies between them wait on the device until then. */
  probePeer(channel: number): PeerRoute;
  /** Milliseconds between two complete timing events, by handle. */
  elapsed(start: number, end: number): number;
  /** The handle another process opens an interprocess event by; binds the event if it was never recorded. */
  exportEvent(eventHandle: number): Uint8Array<ArrayBuffer>;
  openEvent(eventHandle: number, ipc: Uint8Array): void;
  exportMemory(memory: number): Uint8Array<ArrayBuffer>;
  /** Binds another process's memory to a handle; a FREE record lets go of it. */
  openMemory(memory: number, ipc: Uint8Array, byteLength: number): void;
}

export type ControlName = keyof ControlCalls;
