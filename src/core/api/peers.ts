// Which other devices may access the memory of a device: `peer` is the device that accesses, this device has the memory.
// Thread: owner.
import { PeerWhat } from '../../protocol/protocol.gen.js';
import type { PeerReport } from '../../protocol/reports.js';
import { badArgument, show } from '../base/arguments.js';
import { setTimeout } from '../base/timers.js';
import { UnsupportedError } from '../base/errors.js';
import type { Device } from './device.js';
import { revokingKey } from './launch-elsewhere.js';
import { checkOpenDevice, type DeviceLike } from './open-devices.js';
import { refuseJoining } from '../base/apart.js';

/** How long `revoke` waits for kernels of other threads before it asks again. */
const BUSY_MS = 1;

/**
 * Which other devices may access this device's memory: `cuCtxEnablePeerAccess` and `cuMemPoolSetAccess`, `wp.set_peer_access_enabled` and
 * `wp.set_mempool_access_enabled`. There are two switches: 'pool' for the device's arrays, 'memory' for separate allocations (arrays for other
 * processes). Kernels of `peer` then take these arrays; variables of modules they take never. Copies and fills need neither. A graph with copies between
 * devices, or with a kernel that uses memory of another device, opens the pool for itself while it exists, which `isGranted` does not report
 * and `revoke` does not end. A device always accesses its own memory. CPU devices behave as GPUs that reach each other; between backends,
 * there is nothing to grant.
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
    this.#device.core.peerUsers.revoking.delete(keyOf(other, what));
    await this.#set(other, what, true);
  }

  /**
   * Ends the access of `peer`. From the call on, launches with the memory are refused; it resolves when those that were submitted before have
   * finished. Does nothing if nothing was granted, or between devices that have nothing to grant.
   */
  async revoke(peer: DeviceLike, what: 'memory' | 'pool' = 'memory'): Promise<void> {
    const other = checkOpenDevice('peer', peer);
    const own = this.#device.core;
    const { peerUsers } = own;
    const key = keyOf(other, what);
    peerUsers.revoking.add(key);
    try {
      const { isGranted } = await this.#query(other, what);
      if (!isGranted || other.core === own) return;
      // What was submitted before keeps the access. A grant meanwhile ends this.
      await peerUsers.leftBy(other.core.timelines);
      while (peerUsers.revoking.has(key) && !(await this.#set(other, what, false))) {
        await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
      }
    } finally {
      peerUsers.revoking.delete(key);
    }
  }

  async #state(peer: DeviceLike, what: unknown): Promise<PeerReport> {
    const state = await this.#query(peer, what);
    const isEnding = this.#device.core.peerUsers.revoking.has(keyOf(checkOpenDevice('peer', peer), what));
    return isEnding ? { ...state, isGranted: false } : state;
  }

  async #query(peer: DeviceLike, what: unknown): Promise<PeerReport> {
    const { core } = checkOpenDevice('peer', peer);
    checkOpenDevice('device', this.#device);
    const which = whatOf(what);
    const own = this.#device.core;
    if (core === own) return { canGrant: true, isGranted: true };
    refuseJoining(core, own, 'Access of another device');
    if (core.channel.backend !== own.channel.backend) return { canGrant: false, isGranted: false };
    return own.channel.ask('peerState', core.info.ordinal, which);
  }

  #set(peer: Device, what: 'memory' | 'pool', isGranted: boolean): Promise<boolean> {
    return this.#device.core.channel.ask('setPeer', peer.core.info.ordinal, whatOf(what), isGranted);
  }
}

function keyOf({ core }: Pick<Device, 'core'>, what: unknown): string {
  return revokingKey(core, whatOf(what));
}

function whatOf(what: unknown): PeerWhat {
  if (what === 'memory') return PeerWhat.MEMORY;
  if (what === 'pool') return PeerWhat.POOL;
  throw badArgument('what', what, `What to grant (${show(what)}) is neither 'memory' nor 'pool'.`);
}
