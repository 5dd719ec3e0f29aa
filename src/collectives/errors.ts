// The errors of calls on a communicator that does not work any more.
import { CollectiveError, type CollectiveReason } from '../core/base/errors.js';
import { COLLECTIVE_FAULTS } from '../core/channel/build-spec.js';

/** What a call on a closed communicator throws. */
export function closedError(): CollectiveError {
  return faultError(COLLECTIVE_FAULTS.findIndex((fault) => fault?.reason === 'closed'));
}

/** `fault`: an index of COLLECTIVE_FAULTS. */
export function faultError(fault: number): CollectiveError {
  const { reason, text } = COLLECTIVE_FAULTS[fault]!;
  return new CollectiveError(`The communicator does not work any more: ${text}. Open a new one.`, reason);
}

/** An index of COLLECTIVE_FAULTS, for a communicator that the store ended. */
export function faultOf(reason: CollectiveReason): number {
  const of = reason === 'lost' || reason === 'timeout' || reason === 'closed' ? reason : 'aborted';
  // The first one that is 'lost' says that a device is.
  return COLLECTIVE_FAULTS.findLastIndex((fault) => fault.reason === of);
}
