// The errors of calls on a communicator that does not work any more.
import { CollectiveError } from '../core/base/errors.js';
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
