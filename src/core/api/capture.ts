// `stream.capture`: runs a function whose calls are listed instead of submitted, and makes a graph of the list.
// Thread: owner.
import { MAX_LAUNCH_ARGS } from '../../protocol/protocol.gen.js';
import { badArgument, show } from '../base/arguments.js';
import { CaptureError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-names.js';
import { NodeTimers } from '../events/node-timers.js';
import { CaptureSession } from '../graphs/capture-session.js';
import { GraphCore } from '../graphs/graph-core.js';
import { type ArraySlot, type GraphSlots, type ScalarSlot, slotsOf } from '../graphs/slots.js';
import type { Params } from '../kernels/kernel.js';
import { refuseInCapture, runCaptured } from './active-capture.js';
import { enclosingRun } from './current-stream.js';
import { type Captured, Graph } from './graph.js';
import type { Stream } from './stream.js';

/** Options of `stream.capture`. Bad values are an ArgumentError of the call. */
export interface CaptureOptions {
  /** The graph's name in messages and drawings. Default: the label of the stream. */
  readonly label?: string;
  /**
   * Default false: the first stream need not wait for the joined streams at the end; the graph contains their operations in any case. True:
   * a joined stream that it does not wait for is a CaptureError, as in CUDA's stream capture.
   */
  readonly strict?: boolean;
  /** Default false. True: `graph.nodeTimes()` returns when each node ran. Each launch then takes a timestamp after each node. */
  readonly timing?: boolean;
  /** CUDA's capture mode. Accepted and ignored, because calls of other streams and threads never affect a capture. */
  readonly mode?: 'thread-local' | 'global' | 'relaxed';
}

const MODES = ['thread-local', 'global', 'relaxed'];

/** `stream.capture`. */
export function captureGraph<P extends Params>(
  stream: Stream,
  params: P,
  fn: (stream: Stream, slots: GraphSlots<P>) => unknown,
  opts: CaptureOptions = {},
): Graph<P> {
  const { label = stream.label, strict = false, timing = false } = checkOptions(opts);
  const capture = (body: unknown): Captured => record(stream, params, body, label, strict);
  const { session, slots } = capture(fn);
  const timers = timing ? new NodeTimers(stream.core, session.nodes.length) : undefined;
  return new Graph<P>(stream.device, new GraphCore(stream.core, label, session, slots, timers), capture);
}

/** Runs a function whose calls are listed. If it throws, or the capture is no graph, nothing is left. */
function record<P extends Params>(stream: Stream, params: P, fn: unknown, label: string, isStrict: boolean): Captured {
  if (typeof fn !== 'function') throw badArgument('fn', fn, `The function to capture (${show(fn)}) is not a function.`);
  refuseInCapture('already-capturing', 'a capture inside a capture is not possible');
  stream.checkOpen();
  const named = slotsOf(params, stream.core);
  const slots: readonly (ScalarSlot | ArraySlot)[] = Object.values(named);
  const session = new CaptureSession(label, slots);
  if (session.entryCount > MAX_LAUNCH_ARGS) {
    const message = `The parameters of graph ${label} (${session.entryCount}, array dimensions included) exceed the limit (${MAX_LAUNCH_ARGS}).`;
    throw badArgument('params', params, message, MAX_LAUNCH_ARGS);
  }
  try {
    runCaptured(session, label, stream, enclosingRun(), () => (fn as (stream: Stream, slots: GraphSlots<P>) => unknown)(stream, named));
    check(session, label, isStrict);
    session.bindAllocations();
    return { session, slots };
  } catch (error) {
    session.abandon();
    throw error;
  }
}

function check(session: CaptureSession, label: string, isStrict: boolean): void {
  if (session.nodes.length === 0 && session.hostFunctions.length === 0) {
    throw new CaptureError(`The capture of graph ${label} recorded no operation: a graph needs at least one.`, 'empty');
  }
  const unjoined = isStrict ? session.unjoined() : [];
  if (unjoined.length === 0) return;
  const message = `At the end of graph ${label}, its first stream does not wait for stream ${unjoined.join(', ')}: call waitStream, or capture without strict.`;
  throw new CaptureError(message, 'unjoined');
}

function checkOptions(opts: CaptureOptions): CaptureOptions {
  checkOptionNames(opts, ['label', 'strict', 'timing', 'mode']);
  const { label, strict, timing, mode } = opts;
  if (label !== undefined && typeof label !== 'string') throw badArgument('label', label, `The label (${show(label)}) is not a string.`);
  if (strict !== undefined && typeof strict !== 'boolean')
    throw badArgument('strict', strict, `The option strict (${show(strict)}) is not a boolean.`);
  if (timing !== undefined && typeof timing !== 'boolean')
    throw badArgument('timing', timing, `The option timing (${show(timing)}) is not a boolean.`);
  if (mode !== undefined && !MODES.includes(mode))
    throw badArgument('mode', mode, `The mode of the capture (${show(mode)}) is none of ${MODES.join(', ')}.`, MODES);
  return opts;
}
