// The host memory of a test device: buffers by handle, in this thread.
// Thread: owner.
import type { Block } from './memory.js';

/** The calls of a Channel that are about host memory. */
export abstract class TestHostMemory {
  readonly host: Map<number, Block> = new Map();

  /** Host memory was registered: records that wait for it may run. */
  protected abstract onRegistered(): void;

  register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number): void {
    const own = buffer instanceof ArrayBuffer ? structuredClone(buffer, { transfer: [buffer] }) : buffer;
    this.host.set(handle, { bytes: new Uint8Array(own, byteOffset, byteLength), poison: 0 });
    this.onRegistered();
  }

  mapHost(): boolean {
    return false;
  }

  unmapHost(): boolean {
    return false;
  }

  copyHost(target: Uint8Array, source: Uint8Array): void {
    target.set(source);
  }

  copyHostApart(target: Uint8Array, source: Uint8Array): Promise<void> {
    target.set(source);
    return Promise.resolve();
  }

  adviseHugePages(): void {}

  lend(handle: number, byteLength: number): void {
    this.register(handle, new ArrayBuffer(byteLength), 0, byteLength);
  }

  collect(handle: number): Promise<ArrayBuffer> {
    const lent = this.host.get(handle) as Block;
    this.host.delete(handle);
    return Promise.resolve(lent.bytes.buffer as ArrayBuffer);
  }

  unregister(handle: number): Promise<void> {
    this.host.delete(handle);
    return Promise.resolve();
  }
}
