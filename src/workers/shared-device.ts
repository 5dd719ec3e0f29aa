// Opening a device that another thread of this process has open: this thread asks the device's worker for a MessagePort of its own.
// Thread: the one that shares.
import { MessageChannel, type MessagePort, postMessageToThread } from 'node:worker_threads';
import { DeviceLostError } from '../core/base/errors.js';
import type { DeviceToken } from '../core/base/device-token.js';
import { growableSharedBuffer } from '../core/channel/host-buffers.js';
import type { Binding } from '../native/binding.js';
import type { Encoder } from '../protocol/encoder.js';
import { portLink } from './control-link.js';
import type { FromWorker, ShareRequest } from './messages.js';
import { WorkerChannel } from './worker-channel.js';

type Opened = Extract<FromWorker, { readonly type: 'opened' }>;

/** Pinned memory that a thread cuts from one buffer; beyond it, each array has a buffer of its own. */
const ARENA_BYTES = 256 * 2 ** 20;
const PAGE_BYTES = 4096;

/** Rejects with DeviceLostError if the device is not open any more. */
export async function openSharedChannel(binding: Binding, encoder: Encoder, token: DeviceToken): Promise<WorkerChannel> {
  const { address } = token;
  let owner: number;
  try {
    owner = binding.attach(address.channel, true);
  } catch (cause) {
    throw notOpen(token, cause);
  }
  const { port1: port, port2 } = new MessageChannel();
  const request: ShareRequest = { type: 'millrace.share', key: address.key, owner, port: port2 };
  try {
    return await answerTo(request, address.thread, port, (answer) => {
      const { channel: id, info, timeline, backend, maxPending } = answer;
      const arena = growableSharedBuffer(PAGE_BYTES, ARENA_BYTES);
      return new WorkerChannel(binding, portLink(port), encoder, { id, backend, info, maxPending, timeline, arena, address });
    });
  } catch (cause) {
    port.close();
    throw notOpen(token, cause);
  } finally {
    // The channel has attached by itself.
    binding.detach(address.channel);
  }
}

/**
 * Sends the request and resolves with what `make` makes of the answer. `make` is called while the answer is heard, so that it can listen
 * for what follows: a message or the end of the port that comes before anybody listens is lost.
 *
 * The promise of `postMessageToThread` settles after the device's worker has handled the request, which may be after its answer was heard
 * here, and it keeps no event loop alive. Only its rejection is looked at. Until the answer is heard, the port keeps the loop alive.
 */
function answerTo<T>(request: ShareRequest, thread: number, port: MessagePort, make: (answer: Opened) => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const closed = (): void => reject(undefined);
    port.once('close', closed);
    port.once('message', (answer: FromWorker) => {
      port.off('close', closed);
      try {
        if (answer.type === 'opened') resolve(make(answer));
        else reject(undefined);
      } catch (error) {
        reject(error);
      }
    });
    postMessageToThread(thread, request, [request.port]).catch(reject);
  });
}

/** The error for a token whose device was closed, or whose opening thread ended. */
export function notOpen({ device }: DeviceToken, cause?: unknown): DeviceLostError {
  const message = `Device ${device} cannot be shared: the thread that opened it has closed it or ended.`;
  return new DeviceLostError('ERR_MILLRACE_LOST', message, 'closed', { device, cause });
}
