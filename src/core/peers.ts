// Which other devices reach a device's memory. Direction is in the name: this device's memory, `peer` reaches it.
// Thread: owner.
import type { Device } from './device.js';

/** `cuCtxEnablePeerAccess`, `wp.set_peer_access_enabled`, `wp.set_mempool_access_enabled`. */
export class PeerAccess {
  readonly #device: Device;

  /** @internal */
  constructor(device: Device) {
    this.#device = device;
  }

  async canGrant(peer: Device, _what?: 'memory' | 'pool'): Promise<boolean> {
    return peer === this.#device;
  }
}
