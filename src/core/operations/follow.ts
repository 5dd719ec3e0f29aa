// An operation as those see it who watch a stream or its device: told when it is submitted and when it has finished.
// Thread: owner.
import type { MillraceError } from '../base/errors.js';
import type { Hub } from '../base/observable.js';
import { operationsChannel } from '../base/trace.js';
import type { StreamSite } from '../device/stream-site.js';
import type { ActivityFeed } from './activity.js';
import { hostError } from './host-function.js';
import type { Operation } from './operation.js';

/** What watchers of a stream listen to. */
export interface WatchedSite extends StreamSite {
  readonly hub: Hub<Operation>;
  readonly device: { readonly hub: Hub<Operation> };
}

/** Is anybody watching? An operation that nobody watches costs no clock and no waiter. */
export function isWatched({ device, hub }: WatchedSite, activity: ActivityFeed): boolean {
  return hub.observed || device.hub.observed || activity.observed || operationsChannel.hasSubscribers;
}

/** What the loop's part of it failed of. */
function failureOf(operation: Operation): MillraceError | undefined {
  const error = operation.landing?.error;
  return error && hostError(error, operation);
}

/** Tells the watchers of an operation now and when it has finished. */
export function follow({ core, device, timeline, hub }: WatchedSite, activity: ActivityFeed, operation: Operation, ticket: number): void {
  if (operationsChannel.hasSubscribers) operationsChannel.publish({ operation });
  if (!hub.observed && !device.hub.observed && !activity.observed) return;
  const submittedAt = performance.now();
  operation.submittedAt(submittedAt);
  if (activity.observed) activity.next({ phase: 'submitted', operation, atMs: submittedAt });
  const finish = (error?: MillraceError): void => {
    const finishedAt = performance.now();
    hub.next(operation);
    device.hub.next(operation);
    if (!activity.observed) return;
    if (error === undefined) activity.next({ phase: 'finished', operation, atMs: finishedAt }, operation.deviceMs);
    else activity.next({ phase: 'failed', operation, atMs: finishedAt, error });
  };
  core.progress.add(timeline, {
    ticket,
    holdsLoop: false,
    settle: () => {
      const error = activity.observed && operation.canFail ? core.failures.peek(timeline, ticket, operation) : undefined;
      const landed = core.landings.landed(timeline, ticket);
      if (error instanceof Promise) void error.then(finish);
      else if (landed === undefined) finish(error ?? failureOf(operation));
      // The loop has a part in it, or in one before it.
      else void landed.then(() => finish(error ?? failureOf(operation)));
    },
    lose: () => undefined,
  });
}
