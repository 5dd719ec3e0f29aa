// The sentences of explanations.
import type { Explanation, Reason } from './explained.js';
import type { RecordedOperation, RecordedSpan } from './recorded.js';

/** What would change it. Each names the API that does. */
const REMEDIES: Readonly<Record<Reason, string>> = {
  event:
    'Call waitEvent only before the first operation that needs the other stream, or record the event earlier, just after the operation that it is for.',
  stream: 'Wait for less: record an event just after the operation that is needed, and call waitEvent instead of waitStream.',
  array:
    'Give each stream an array of its own, or take one of them from a pool of two and swap them: the array makes its users run one after the other.',
  order: 'Submit one of them to a stream of its own (device.createStream()): a stream runs one operation after the other.',
  'default-stream': 'Submit one of them to a stream of its own (device.createStream()): device.stream runs one operation after the other.',
  'copy-engine':
    'Copy less or in the other direction meanwhile: a device copies one thing at a time in each direction, whatever the streams.',
  'device-busy':
    'Launch fewer blocks at a time, or give the urgent stream a priority (device.createStream({ priority })): the device has no room for both.',
  memory: 'Allocate before the loop and use the arrays again, or dispose arrays earlier.',
  compile: 'Call device.compile(kernel) before the first launch, or ship images that were built ahead (npx millrace build).',
  graph: 'Call graph.upload() before the first launch of the graph.',
  window: 'Submit fewer, larger operations, or capture them as a graph (stream.capture), which is one operation.',
  pageable: 'Use device.pinned() for the host end: the device then copies from and to it without a detour.',
  pinning: 'Make pinned arrays (device.pinned()) before the loop and use them again.',
  peer: 'Copy a few bytes between the two devices while the program starts: the route is tested once.',
  hold: 'Do the work of the function before the call, or put it on a stream of its own: hold and external stop their stream.',
  await: 'Submit the next operation before you await this one: operations of a stream come after each other without an await.',
  stage: 'Run more items at the same time (overlap with a larger depth), or more threads for this stage.',
  collection: 'Make less garbage in the loop: use typed arrays again (read({ into }), device.pinned()) instead of new ones.',
  stall: "Move the computation to another thread (piscina, worker_threads), or submit the device's work before it.",
  host: 'Submit it earlier: before other work of this turn of the event loop, or as soon as its data are there.',
  issue: "Submit fewer, larger operations, capture them as a graph (stream.capture), or leave a processor to the device's thread.",
  latency: 'Give each launch more work, or capture the operations as a graph (stream.capture): each costs some microseconds to begin.',
  unknown: 'Record the whole program with the times of the device: recordTimeline(undefined, { deviceTimes: true }).',
};

export function remedyOf(reason: Reason): string {
  return REMEDIES[reason];
}

/** Of what `name` was asked, with the place of the call if it was recorded. */
export function nameOf({ kind, label, stream, at }: RecordedOperation): string {
  return `${label ?? kind} on stream ${stream}${at === undefined ? '' : ` (${at})`}`;
}

export function isOperation(because: RecordedOperation | RecordedSpan | undefined): because is RecordedOperation {
  return because !== undefined && 'ticket' in because;
}

/** What an explanation is about. */
export interface Delayed {
  readonly reason: Reason;
  readonly ms: number;
  /** The operation that was late: it, or one before it on its stream. */
  readonly late: RecordedOperation;
  /** The record that waited for another stream before it. */
  readonly wait?: RecordedOperation | undefined;
  readonly because?: RecordedOperation | RecordedSpan | undefined;
  /** What `because` waited for in turn, the next cause first. */
  readonly chain: readonly RecordedOperation[];
}

export function explanationOf(delayed: Delayed): Explanation {
  const { reason, ms, because, chain } = delayed;
  const first = `${sentence(delayed)}.`;
  const turn =
    isOperation(because) && chain.length > 0
      ? ` In turn, ${because.label ?? because.kind} waited for ${chain.map(nameOf).join(', and that for ')}.`
      : '';
  return withText({ reason, ms, text: first + turn, remedy: remedyOf(reason), ...(because !== undefined && { because }) });
}

export function withText(explanation: Omit<Explanation, 'toString'>): Explanation {
  const { ms, text, remedy } = explanation;
  return Object.defineProperty(explanation, 'toString', { value: () => `${ms.toFixed(2)} ms: ${text} ${remedy}` });
}

/** As a text, a line for each. */
export function linesOf(explanations: readonly Explanation[]): readonly Explanation[] {
  return Object.defineProperty(explanations, 'toString', { value: () => explanations.join('\n') });
}

function sentence({ reason, late: operation, wait, because }: Delayed): string {
  const late = nameOf(operation);
  const cause = isOperation(because) ? nameOf(because) : because?.name;
  const call = wait?.at === undefined ? '' : ` (${wait.at})`;
  switch (reason) {
    case 'event':
      return `${late} came after a waitEvent${call} for ${cause ?? 'an event of another process'}`;
    case 'stream':
      return `${late} came after a waitStream${call} for ${cause ?? 'an operation that the recording does not have'}`;
    case 'array':
      return `${late} uses an array that ${cause ?? 'an operation that the recording does not have'} used before`;
    case 'order':
      return `${late} came after ${cause}, which still ran: a stream runs one operation after the other`;
    case 'default-stream':
      return `${late} came after ${cause}, which still ran: both are on the default stream`;
    case 'copy-engine':
      return `${late} was ready, and the device copied in the same direction: ${cause}`;
    case 'device-busy':
      return `${late} was ready, and ${cause} had the device`;
    case 'memory':
      return cause === undefined
        ? `${late} waited for device memory`
        : `${late} came after ${cause}, which allocated or freed device memory`;
    case 'compile':
      return `The kernel of ${late} was being built`;
    case 'graph':
      return `The graph of ${late} was being built`;
    case 'window':
      return `${late} waited for room: 512 operations of its stream were in flight`;
    case 'pageable':
      return `The bytes of an ordinary typed array were being copied for ${late}, since the device cannot use that memory by itself`;
    case 'pinning':
      return `Host memory of ${late} was being page-locked`;
    case 'peer':
      return `The route between the devices of ${late} was being tested`;
    case 'hold':
      return cause === undefined
        ? `A function of the host held the stream: ${late}`
        : `${late} came after a function of the host: ${cause}`;
    case 'await':
      return `The host awaited something (${cause}) before it called ${late}`;
    case 'stage':
      return `The host was in the stage ${cause} before it called ${late}`;
    case 'collection':
      return `V8 collected garbage before the call of ${late}`;
    case 'stall':
      return `The thread ran other JavaScript, and the event loop did not turn, before the call of ${late}`;
    case 'host':
      return `The call of ${late} came when its stream had nothing to do`;
    case 'issue':
      return `${late} was called, and the device's thread had not issued it yet${cause === undefined ? '' : `, last because of ${cause}`}`;
    case 'latency':
      return `${late} was issued, and the device had not begun it yet`;
    case 'unknown':
      return `The recording does not tell what ${late} waited for`;
  }
}
