// The capture that is in progress in this thread, and the streams in it.
//
// While the captured function runs, each captured stream writes to a timeline of the capture (graphs/capture-session.ts). Another stream
// joins when it waits for a captured one. The function is synchronous, so nothing else runs on this thread meanwhile; other threads are
// not affected.
// Thread: owner.
import { badArgument } from '../base/arguments.js';
import { CaptureError, type CaptureReason } from '../base/errors.js';
import { isPromiseLike } from '../base/promise-like.js';
import type { DeviceCore } from '../device/device-core.js';
import type { CaptureSession } from '../graphs/capture-session.js';
import type { Timeline } from '../timeline/timeline.js';
import { refuseJoining } from '../base/apart.js';

/** What a capture asks of a stream. */
interface CapturedStream {
  readonly core: DeviceCore;
  timeline: Timeline;
  checkOpen(): void;
}

interface ActiveCapture {
  readonly session: CaptureSession;
  readonly label: string;
  /** The run that encloses the capture. */
  readonly scope: object | undefined;
  /** The captured streams, with their own timelines. */
  readonly streams: Map<CapturedStream, Timeline>;
  /** Of the body of a condition: the capture around it. */
  readonly outer: ActiveCapture | undefined;
}

let active: ActiveCapture | undefined;

/**
 * The stream that is current on the device because it is captured, and the run that encloses the capture; undefined if no stream of the
 * device is captured.
 */
export function capturingStream(core: DeviceCore): { readonly stream: CapturedStream; readonly scope: object | undefined } | undefined {
  for (let capture = active; capture !== undefined; capture = capture.outer) {
    for (const stream of capture.streams.keys()) if (stream.core === core) return { stream, scope: capture.scope };
  }
  return undefined;
}

/** Throws CaptureError while a capture is in progress: `what` the call would do. */
export function refuseInCapture(reason: CaptureReason, what: string): void {
  if (active === undefined) return;
  throw new CaptureError(`Graph ${active.label} is being captured: ${what}.`, reason);
}

/** The stream is about to wait for a point of this timeline: if that is captured, the stream joins the capture. */
export function joinCapture(stream: CapturedStream, timeline: Timeline | undefined): void {
  if (active === undefined || timeline?.recording !== active.session || stream.timeline.recording !== undefined) return;
  join(active, stream);
}

/** Runs the function with the stream captured, in the run `scope`. Throws what it throws, and ArgumentError if it returns a promise. */
export function runCaptured(
  session: CaptureSession,
  label: string,
  stream: CapturedStream,
  scope: object | undefined,
  fn: () => unknown,
): void {
  const outer = active;
  const capturing: ActiveCapture = { session, label, scope, streams: new Map(), outer };
  active = capturing;
  try {
    join(capturing, stream);
    const result = fn();
    if (!isPromiseLike(result)) return;
    result.then(undefined, () => undefined);
    throw badArgument(
      'fn',
      fn,
      'The function to capture returned a promise: the capture ends when the function returns. Pass a function without await.',
    );
  } finally {
    active = outer;
    for (const [captured, timeline] of capturing.streams) captured.timeline = timeline;
    session.end();
  }
}

/** Runs the body of a condition in the capture that is in progress, which takes no operations meanwhile. `call`: what it was given to. */
export function runBody(around: CaptureSession, session: CaptureSession, stream: CapturedStream, call: string, fn: () => unknown): void {
  const { label, scope } = active as ActiveCapture;
  around.bodyOf = call;
  try {
    runCaptured(session, label, stream, scope, fn);
  } finally {
    around.bodyOf = undefined;
  }
}

function join({ label, session, streams }: ActiveCapture, stream: CapturedStream): void {
  stream.checkOpen();
  const { core, timeline } = stream;
  for (const { core: first } of streams.keys()) {
    refuseJoining(first, core, 'A graph of several devices');
    if (first.channel.backend === core.channel.backend) continue;
    const what = `stream ${timeline.label} of device ${core.name} cannot join it: a graph runs on devices of one backend (${first.channel.backend})`;
    throw new CaptureError(`Graph ${label} is being captured: ${what}.`, 'unsupported-node', { device: core.name, stream: timeline.label });
  }
  streams.set(stream, stream.timeline);
  stream.timeline = session.join(stream.core, stream.timeline);
}
