// `captureIf`, `captureWhile` and `captureSwitch`: check the arguments, capture the bodies, and add one node to the capture of the stream;
// outside of a capture, make a graph of that node.
// Thread: owner.
import { ConditionKind } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show, wrongDevice } from '../base/arguments.js';
import type { CaptureError } from '../base/errors.js';
import type { StreamContext } from '../device/stream-context.js';
import { BodySession } from '../graphs/body-session.js';
import { CaptureSession } from '../graphs/capture-session.js';
import { GraphCore } from '../graphs/graph-core.js';
import { ArraySlot, ScalarSlot } from '../graphs/slots.js';
import { refuseInCapture, runBody, runCaptured } from './active-capture.js';
import { enclosingRun } from './current-stream.js';
import { Graph } from './graph.js';
import { submitGraphLaunch } from './launch-graph.js';
import type { Recorder } from './recorder.js';
import { StridedArray } from './strided-array.js';

/** A body of a condition: a function that submits operations to the stream that it gets, or a captured graph without parameters. */
export type CaptureBody = Graph | ((stream: Recorder) => unknown);

/** A body whose function returns `R`, which is no promise: a condition cannot run an async function. */
export type BodyOf<R> = Graph | ((stream: Recorder) => [Extract<R, PromiseLike<unknown>>] extends [never] ? R : never);

/** The same body, unless it is an async function, which a condition cannot run. */
export type SyncBody<B> = B extends (stream: Recorder) => infer R ? ([Extract<R, PromiseLike<unknown>>] extends [never] ? B : never) : B;

/** The arguments of one call. */
export interface ConditionCall {
  readonly name: 'captureIf' | 'captureWhile' | 'captureSwitch';
  readonly kind: 'if' | 'while' | 'switch';
  readonly value: unknown;
  /** The parameter of the value. */
  readonly parameter: 'condition' | 'index';
  /** With the names of their parameters; undefined for one that does nothing. */
  readonly bodies: readonly (readonly [name: string, body: unknown])[];
}

const KINDS = { if: ConditionKind.IF, while: ConditionKind.WHILE, switch: ConditionKind.SWITCH } as const;

/** The call of `captureIf`. Throws ArgumentError without a body. */
export function ifCall(value: unknown, onTrue: unknown, onFalse: unknown): ConditionCall {
  if (onTrue === undefined && onFalse === undefined)
    throw badArgument('onTrue', onTrue, 'The bodies of the captureIf are both undefined: at least one of onTrue and onFalse is needed.');
  const then = ['onTrue', onTrue] as const;
  const bodies = onFalse === undefined ? [then] : [then, ['onFalse', onFalse] as const];
  return { name: 'captureIf', kind: 'if', value, parameter: 'condition', bodies };
}

/** The call of `captureWhile`. */
export function whileCall(value: unknown, body: unknown): ConditionCall {
  if (body === undefined) throw badBody('captureWhile', 'body', body);
  return { name: 'captureWhile', kind: 'while', value, parameter: 'condition', bodies: [['body', body]] };
}

/** The call of `captureSwitch`. Throws ArgumentError without a body. */
export function switchCall(value: unknown, cases: unknown): ConditionCall {
  if (!Array.isArray(cases) || cases.length === 0)
    throw badArgument('cases', cases, `The cases of the captureSwitch (${show(cases)}) are not an array of at least one body.`);
  const bodies = Array.from(cases, (body: unknown, n) => [`cases[${n}]`, body] as const);
  for (const [name, body] of bodies) if (body === undefined) throw badBody('captureSwitch', name, body);
  return { name: 'captureSwitch', kind: 'switch', value, parameter: 'index', bodies };
}

/**
 * In a capture of the stream, adds the condition and returns its ticket. Otherwise returns a graph of it that is to be launched once and
 * closed. If it throws, nothing is left of the call.
 */
export function captureCondition(
  stream: Recorder,
  call: ConditionCall,
): { readonly graph: GraphCore; readonly ticket?: never } | { readonly graph?: never; readonly ticket: number } {
  if (stream.timeline.recording instanceof CaptureSession) return { ticket: add(stream, stream.timeline.recording, call) };
  const { core, label } = stream;
  refuseInCapture(
    'already-capturing',
    `stream ${label} of device ${core.name}, which is not captured, cannot run a ${call.name} during the capture`,
  );
  const session = new CaptureSession(call.name, [], true);
  try {
    runCaptured(session, call.name, stream, enclosingRun(), () => void add(stream, session, call));
    session.bindAllocations();
    return { graph: new GraphCore(core, call.name, session, []) };
  } catch (error) {
    session.abandon();
    throw error;
  }
}

/** Captures the bodies and adds the node. Returns its ticket. */
function add(stream: Recorder, session: CaptureSession, call: ConditionCall): number {
  const { core, timeline } = stream;
  const value = checkValue(stream, call);
  const bodies: BodySession[] = [];
  try {
    for (const [name, body] of call.bodies) bodies.push(captureBody(stream, session, call, name, body));
    // A body may have disposed the array.
    if (value.isDisposed) throw value.disposedError();
    const { storage, byteOffset, byteLength } = value;
    if (call.kind === 'while') checkLoop(stream, session, bodies[0] as BodySession, value);
    const record = core.tracker.begin(stream);
    try {
      record.add(storage, byteOffset, byteOffset + byteLength, false);
      for (const { memories } of bodies) {
        for (const [memory, captured] of memories)
          for (const { start, end, isWrite } of captured.used()) record.add(memory, start, end, isWrite);
      }
      record.order('graph', call.name);
      const condition = { kind: KINDS[call.kind], handle: storage.handle, offset: storage.base + byteOffset };
      const ticket = session.addCondition(timeline, call.kind, condition, bodies);
      record.commit(ticket);
      return ticket;
    } catch (error) {
      record.abandon();
      throw error;
    }
  } catch (error) {
    for (const body of bodies) body.abandon();
    throw error;
  }
}

function captureBody(stream: Recorder, around: CaptureSession, { name: call }: ConditionCall, name: string, body: unknown): BodySession {
  const session = new BodySession(stream.core, stream.timeline, around, call);
  const fn = functionOf(stream, call, name, body);
  try {
    runBody(around, session, stream, call, fn);
    return session;
  } catch (error) {
    session.abandon();
    throw error;
  }
}

/** What submits the operations of a body. */
function functionOf(stream: Recorder, call: string, name: string, body: unknown): () => unknown {
  if (body === undefined) return () => undefined;
  if (typeof body === 'function') return () => (body as (stream: Recorder) => unknown)(stream);
  if (!(body instanceof Graph)) throw badBody(call, name, body);
  const { slots, label } = body.core;
  if (slots.length > 0) {
    const message = `The ${name} of the ${call} is graph ${label}, which has parameters: pass a function that launches it with values.`;
    throw badArgument(name, body, message);
  }
  return () => submitGraphLaunch(stream, body.core, undefined);
}

function checkValue({ core }: StreamContext, { name, parameter, value }: ConditionCall): StridedArray {
  const what = `The ${parameter} of the ${name}`;
  const wanted = 'an array of one i32 on the device is needed';
  const bad = (message: string): Error => badArgument(parameter, value, `${what} ${message}: ${wanted}.`);
  if (value instanceof ArraySlot || value instanceof ScalarSlot) throw bad(`is slot ${value.name}, which a condition cannot read`);
  if (!(value instanceof StridedArray)) throw bad(`(${show(value)}) is not a device array`);
  if (value.isDisposed) throw value.disposedError();
  if (value.core !== core) throw wrongDevice(parameter, value, `${what} ${belongsTo(value.core.name, core.name)}.`);
  if (value.dtype !== 'i32') throw bad(`has dtype ${value.dtype}`);
  if (value.length !== 1) throw bad(`has ${value.length} elements`);
  return value;
}

/** A loop whose condition nothing changes would occupy the device for ever. */
function checkLoop({ timeline, ordering }: Recorder, session: CaptureSession, body: BodySession, value: StridedArray): void {
  const { storage, byteOffset, byteLength, label } = value;
  const refusal = (what: string, reason: 'empty' | 'endless'): CaptureError => session.refusal(timeline, reason, what);
  if (body.nodes.length === 0) throw refusal('the body of a captureWhile recorded no operation, so the loop would never end', 'empty');
  if (ordering === 'explicit') return;
  const uses = body.memories.get(storage)?.used() ?? [];
  if (uses.some(({ start, end, isWrite }) => isWrite && start < byteOffset + byteLength && byteOffset < end)) return;
  throw refusal(`the body of a captureWhile does not write its condition (${label}), so the loop would never end`, 'endless');
}

function badBody(call: string, name: string, body: unknown): Error {
  return badArgument(name, body, `The ${name} of the ${call} (${show(body)}) is neither a function nor a graph.`);
}
