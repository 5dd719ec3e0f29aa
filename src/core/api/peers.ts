// Which other devices may access the memory of a device: `peer` is the device that accesses, this device has the memory.
// Thread: owner.
import { PeerWhat } from '../../protocol/protocol.gen.js';
import type { PeerReport } from '../../protocol/reports.js';
import { badArgument, show } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';
import type { Device } from './device.js';
import { checkOpenDevice, type DeviceLike } from './open-devices.js';

/**
 * Which other devices may access this device's memory: `cuCtxEnablePeerAccess` and `cuMemPoolSetAccess`, `wp.set_peer_access_enabled` and
 * `wp.set_mempool_access_enabled`. There are two switches: 'memory' for separate allocations, 'pool' for the device's arrays. Copies
 * between devices need neither: a graph with such copies opens the pool for itself while it exists, which `isGranted` does not report and
 * `revoke` does not end. A device always accesses its own memory; between CPU devices, and between backends, there is nothing to
 * grant.
 *
 * Every call rejects with ArgumentError if `peer` is not a device of this thread, and with StateError or DeviceLostError if one of the
 * two is closed or lost.
 */
export class PeerAccess {
  readonly #device: Device;

  /** @internal */
  constructor(device: Device) {
    this.#device = device;
  }

  /** Whether `grant` is possible: `cuDeviceCanAccessPeer`, `wp.is_peer_access_supported`. */
  async canGrant(peer: DeviceLike, what: 'memory' | 'pool' = 'memory'): Promise<boolean> {
    return (await this.#state(peer, what)).canGrant;
  }

  /** Whether `peer` has access now: `wp.is_peer_access_enabled`, `wp.is_mempool_access_enabled`. */
  async isGranted(peer: DeviceLike, what: 'memory' | 'pool' = 'memory'): Promise<boolean> {
    return (await this.#state(peer, what)).isGranted;
  }

  /** Lets `peer` access this device's memory. Rejects with UnsupportedError if `canGrant` is false. Granting again does nothing. */
  async grant(peer: DeviceLike, what: 'memory' | 'pool' = 'memory'): Promise<void> {
    const other = checkOpenDevice('peer', peer);
    const { canGrant, isGranted } = await this.#state(other, what);
    if (isGranted) return;
    if (!canGrant) {
      const { name } = this.#device.core;
      const message = `Device ${other.info.id} cannot access the ${what} of device ${name}. Copies between the devices work without access.`;
      throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'peer access', { device: name });
    }
    await this.#set(other, what, true);
  }

  /** Ends the access of `peer`. Does nothing if nothing was granted, or between devices that have nothing to grant. */
  async revoke(peer: DeviceLike, what: 'memory' | 'pool' = 'memory'): Promise<void> {
    const other = checkOpenDevice('peer', peer);
    const { isGranted } = await this.#state(other, what);
    if (isGranted && other.core !== this.#device.core) await this.#set(other, what, false);
  }

  async #state(peer: DeviceLike, what: unknown): Promise<PeerReport> {
    const { core } = checkOpenDevice('peer', peer);
    checkOpenDevice('device', this.#device);
    const which = whatOf(what);
    const own = this.#device.core;
    if (core === own) return { canGrant: true, isGranted: true };
    if (core.channel.backend !== 'cuda' || own.channel.backend !== 'cuda') return { canGrant: false, isGranted: false };
    return own.channel.ask('peerState', core.info.ordinal, which);
  }

  async #set(peer: Device, what: 'memory' | 'pool', isGranted: boolean): Promise<void> {
    await this.#device.core.channel.ask('setPeer', peer.core.info.ordinal, whatOf(what), isGranted);
  }
}

function whatOf(what: unknown): PeerWhat {
  if (what === 'memory') return PeerWhat.MEMORY;
  if (what === 'pool') return PeerWhat.POOL;
  throw badArgument('what', what, `What to grant (${show(what)}) is neither 'memory' nor 'pool'.`);
}
