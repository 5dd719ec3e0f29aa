// The messages of the tracing channels `millrace:launch` and `millrace:copy`.
// Thread: owner.
import { AsyncResource } from 'node:async_hooks';
import { type Trace, traceCall, type TracedEnd, traceEnd } from '../base/trace.js';
import type { Operation } from './operation.js';

/** The message of `millrace:launch` and `millrace:copy`. */
export interface OperationMessage extends TracedEnd<Operation> {
  /** The device's name, such as 'cuda:0'. */
  readonly device: string;
  /** The stream's label. */
  readonly stream: string;
  /** The `label` of the call; of a launch without one, the name of the kernel, or the label of the graph. */
  readonly name?: string | undefined;
  /** At 'asyncEnd': milliseconds for which the device worked on it, on streams with `timing`. */
  deviceMs?: number;
}

/** Traces a call that submits an operation, and the operation until it has ended. */
export function traceOperation(trace: Trace, message: OperationMessage, submit: () => Operation): Operation {
  return traceCall(trace, message, () => {
    const operation = submit();
    message.result = operation;
    const context = new AsyncResource('millrace.operation');
    operation.whenOver((deviceMs) => {
      if (deviceMs !== undefined) message.deviceMs = deviceMs;
      const { error } = operation;
      if (error !== undefined) message.error = error;
      context.runInAsyncScope(() => traceEnd(trace, message));
      context.emitDestroy();
    });
    return operation;
  });
}
