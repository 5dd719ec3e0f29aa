// Opening a device that another thread of this process has open: this thread asks the device's worker for a MessagePort of its own.
// Thread: the one that shares.
import { MessageChannel, postMessageToThread } from 'node:worker_threads';
import { DeviceLostError } from '../core/base/errors.js';
import type { DeviceToken } from '../core/base/device-token.js';
import { growableSharedBuffer } from '../core/channel/shared-buffer.js';
import type { Binding } from '../native/binding.js';
import type { Encoder } from '../protocol/encoder.js';
import { portLink } from './control-link.js';
import type { FromWorker, ShareRequest } from './messages.js';
import { WorkerChannel } from './worker-channel.js';

/** Pinned memory that a thread cuts from one buffer; beyond it, each array has a buffer of its own. */
const ARENA_BYTES = 256 * 2 ** 20;
const PAGE_BYTES = 4096;

/** Rejects with DeviceLostError if the device is not open any more. */
export async function openSharedChannel(binding: Binding, encoder: Encoder, token: DeviceToken): Promise<WorkerChannel> {
  const { address, device } = token;
  const { port1: port, port2 } = new MessageChannel();
  // Read here before anybody else listens: nothing is missed, and an end without an answer is noticed.
  const answered = new Promise<FromWorker | undefined>((resolve) => {
    port.once('message', resolve);
    port.once('close', () => resolve(undefined));
  });
  let owner: number;
  try {
    owner = binding.attach(address.channel, true);
  } catch (cause) {
    port.close();
    throw gone(device, cause);
  }
  try {
    const request: ShareRequest = { type: 'millrace.share', key: address.key, owner, port: port2 };
    await postMessageToThread(address.thread, request, [port2]);
    const answer = await answered;
    if (answer?.type !== 'opened') throw gone(device, undefined);
    const { channel: id, info, timeline, backend, maxPending } = answer;
    const arena = growableSharedBuffer(PAGE_BYTES, ARENA_BYTES);
    return new WorkerChannel(binding, portLink(port), encoder, { id, backend, info, maxPending, timeline, arena, address });
  } catch (error) {
    port.close();
    throw error instanceof DeviceLostError ? error : gone(device, error);
  } finally {
    // The channel has attached by itself.
    binding.detach(address.channel);
  }
}

function gone(device: string, cause: unknown): DeviceLostError {
  const message = `Device ${device} cannot be shared: the thread that opened it has closed it or ended.`;
  return new DeviceLostError('ERR_MILLRACE_LOST', message, 'closed', { device, cause });
}
