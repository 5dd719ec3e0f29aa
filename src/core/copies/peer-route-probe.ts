// Tests the route between two devices of one backend once, before their first copy. The device holds that copy until then.
// Thread: owner.
import { PeerRoute } from '../../protocol/protocol.gen.js';
import type { DeviceCore } from '../device/device-core.js';

/** By destination: the sources whose route was tested. A device that is opened again has another core. */
const probed: WeakMap<DeviceCore, WeakSet<DeviceCore>> = new WeakMap();

export function probePeer(to: DeviceCore, from: DeviceCore): void {
  if (to === from || to.channel.backend !== from.channel.backend) return;
  let sources = probed.get(to);
  if (sources === undefined) probed.set(to, (sources = new WeakSet()));
  if (sources.has(from)) return;
  sources.add(from);
  to.channel.ask('probePeer', from.channel.id).then(
    (route) => {
      if (route === PeerRoute.STAGED) warn(to, from, 'the direct route gave wrong bytes');
    },
    (error: Error) => {
      // Do not warn if one of the devices is closed or lost.
      if (to.refuseIfOver() === undefined && from.refuseIfOver() === undefined) warn(to, from, error.message);
    },
  );
}

function warn(to: DeviceCore, from: DeviceCore, why: string): void {
  const message = `Copies from device ${from.name} to ${to.name} go through host memory and are slower: ${why}.`;
  process.emitWarning(message, { type: 'MillraceWarning', code: 'MILLRACE_PEER' });
}
