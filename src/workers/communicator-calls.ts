// Communicators of GPUs, by the addon.
// Thread: owner.
import { CollectiveError, UnavailableError } from '../core/base/errors.js';
import type { CommunicatorCalls } from '../core/channel/channel.js';
import type { Binding, NativeFailure } from '../native/binding.js';
import { Status } from '../protocol/protocol.gen.js';

const NO_ID = new Uint8Array();
const HELP = [
  'pip install nvidia-nccl-cu12 (or nvidia-nccl-cu13 for CUDA 13) brings it, and so does the package libnccl2 of NVIDIA.',
  'Set MILLRACE_NCCL to the path of a libnccl.so.2 that is somewhere else.',
];

export function communicatorCalls(binding: Binding): CommunicatorCalls {
  return {
    open: async ({ ordinals, ranks, size, id = NO_ID }) => {
      try {
        return await binding.openCommunicator(Float64Array.from(ordinals), Float64Array.from(ranks), size, id);
      } catch (error) {
        throw openingError(error as NativeFailure);
      }
    },
    makeId: () => binding.communicatorId(),
    state: (communicator) => binding.communicatorState(communicator),
    abort: (communicator, why) => binding.abortCommunicator(communicator, why),
    close: (communicator) => binding.closeCommunicator(communicator),
  };
}

function openingError(failure: NativeFailure): Error {
  const { status, driverStatus, message } = failure;
  if (status === Status.UNAVAILABLE) {
    const what = 'Collectives of GPUs need NCCL (libnccl.so.2), which was not found.';
    return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', what, HELP);
  }
  return new CollectiveError(`The communicator did not open: ${message}.`, 'failed', { driverStatus });
}
