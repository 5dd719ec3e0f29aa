// A captured graph.
// Thread: the one that captured it.
import type { ScalarInput, Scalar } from '../elements/dtype.js';
import { badArgument, refuseSurplus, show } from '../base/arguments.js';
import { describeAs } from '../base/describe.js';
import { CaptureError, EventTimingError } from '../base/errors.js';
import { endForgotten } from '../base/forgotten.js';
import { nextSerial } from '../base/serial.js';
import { GRAPH_STAYS, STREAM_STAYS } from '../base/uncloneable.js';
import { NodeTimers } from '../events/node-timers.js';
import type { CaptureSession } from '../graphs/capture-session.js';
import type { GraphCore } from '../graphs/graph-core.js';
import { differenceOf, edgesOf, type GraphEdge, type GraphNode, nodesOf, type NodeTime, timesOf } from '../graphs/graph-view.js';
import { dotOf } from '../graphs/graph-dot.js';
import { svgOf } from '../graphs/graph-svg.js';
import type { ArraySlot, GraphSlots, ScalarSlot } from '../graphs/slots.js';
import type { ArrayParam, Params } from '../kernels/kernel.js';
import type { Operation } from '../operations/operation.js';
import { checkWaitCall, rest, type WaitOptions } from '../waits/wait.js';
import { refuseInCapture } from './active-capture.js';
import type { DeviceArray } from './array.js';
import { currentStream } from './current-stream.js';
import type { Device } from './device.js';
import type { Recorder } from './recorder.js';
import { performance } from '../base/timers.js';

/** The values that each launch of a graph gives: one for each parameter of the capture, by name. A launch must give all of them. */
export type GraphValues<P extends Params> = keyof P extends never
  ? []
  : [
      values: {
        readonly [K in keyof P]: P[K] extends Scalar<infer D> ? ScalarInput<D> : P[K] extends ArrayParam<infer D> ? DeviceArray<D> : never;
      },
    ];

/** @internal What a capture recorded. */
export interface Captured {
  readonly session: CaptureSession;
  readonly slots: readonly (ScalarSlot | ArraySlot)[];
}

/** The present form of a graph, in an object that does not refer to the Graph. */
interface Form {
  core: GraphCore<NodeTimers>;
}

// A graph that is collected without `close` would keep its memory for as long as the device is open.
const forgotten = endForgotten<Form>((form) => form.core.close());

/**
 * A list of operations and their dependencies: `CUgraphExec`, `cupy.cuda.Graph`, `wp.Graph`, PyTorch's `CUDAGraph`. `stream.capture` captures
 * it once; it can be launched any number of times, and each launch is one operation. A launch reads and writes the arrays of the capture,
 * not copies of them. Values that differ between launches are parameters of the capture. The graph keeps the memory that it uses, also of
 * arrays that were disposed.
 */
export class Graph<in out P extends Params = {}> implements AsyncDisposable {
  /** @internal */
  readonly uncloneable: symbol = GRAPH_STAYS;
  /** @internal */
  readonly serial: number = nextSerial();
  /** The name in messages: the option `label` of the capture, or the label of the stream. */
  readonly label: string;
  readonly #maker: Device;
  readonly #capture: (fn: unknown) => Captured;
  readonly #form: Form;

  /** @internal Made by `stream.capture`. `capture`: captures another function with the same parameters. */
  constructor(maker: Device, core: GraphCore<NodeTimers>, capture: (fn: unknown) => Captured) {
    this.#maker = maker;
    this.#capture = capture;
    this.#form = { core };
    this.label = core.label;
    forgotten.register(this, this.#form, this);
  }

  /** @internal */
  get core(): GraphCore<NodeTimers> {
    return this.#form.core;
  }

  /** The operations, in the order of the calls. */
  get nodes(): readonly GraphNode[] {
    return nodesOf(this.core.session.nodes);
  }

  /** Pairs of node ids, the second of which comes after the first because of the order of a stream, a wait, or the tracked use of an array. */
  get edges(): readonly GraphEdge[] {
    return edgesOf(this.core.session.nodes);
  }

  /** The device of the stream that the graph was captured on: its streams launch the graph. */
  get device(): Device {
    return this.#maker.context.deviceOf(this.#maker);
  }

  /** Launches the graph on the current stream of its device: `stream.launch(graph, values)` names another one. Throws as that does. */
  launch(...values: GraphValues<P>): Operation {
    return currentStream(this.device).launch(this, ...values);
  }

  /**
   * Builds the graph and transfers it to the device, so that the first launch takes as little time as later ones: `cuGraphUpload`. This is
   * one operation of the stream (default: the current stream of the graph's device). It runs no node and uses no array; later launches come
   * after it. `done` rejects if the graph or one of its kernels cannot be built. Throws StateError for a closed graph or stream,
   * ArgumentError for a stream of another device, CaptureError for a captured stream.
   * @example await graph.upload().done;
   */
  upload(stream: Recorder = currentStream(this.device)): Operation {
    if (arguments.length > 1) refuseSurplus('upload', arguments, 1);
    if ((stream as Partial<Recorder> | null)?.uncloneable !== STREAM_STAYS)
      throw badArgument('stream', stream, `The stream to upload graph ${this.label} on (${show(stream)}) is not a stream.`);
    return stream.uploadGraph(this);
  }

  /**
   * Captures another function with the same parameters, on the stream of the capture: `cuGraphExecUpdate`. Later launches run its nodes;
   * launches that were submitted before run the former nodes. The new nodes must have the same kinds, devices and order as those of the
   * graph; kernels, shapes, arrays and values may differ. Throws CaptureError with reason 'topology' if the nodes differ, and the errors of
   * `capture`; the graph is then unchanged.
   */
  update<R>(fn: (stream: Recorder, slots: GraphSlots<P>) => R extends PromiseLike<unknown> ? never : R): void {
    if (arguments.length > 1) refuseSurplus('update', arguments, 1);
    this.core.checkOpen();
    const { session, slots } = this.#capture(fn);
    const difference = differenceOf(this.core.session.nodes, session.nodes);
    if (difference !== undefined) {
      session.abandon();
      throw new CaptureError(`The nodes of the update differ from those of graph ${this.label}: ${difference}.`, 'topology');
    }
    const timers = this.core.timers && new NodeTimers(this.core.core, session.nodes.length);
    this.#form.core = this.core.replacedBy(session, slots, timers);
  }

  /**
   * When each node of the latest launch ran, in the order of `nodes`, for a graph that was captured with `timing`. Waits for that launch, and
   * for launches that are submitted before it has finished. Rejects with EventTimingError without `timing` and before the first launch,
   * with StateError after `close` and if the launch failed before a node, and as `elapsed` does.
   * @example const { durationUs } = (await graph.nodeTimes())[0];
   */
  async nodeTimes(opts?: WaitOptions): Promise<readonly NodeTime[]> {
    if (arguments.length > 1) refuseSurplus('nodeTimes', arguments, 1);
    checkWaitCall(opts);
    refuseInCapture('host-wait', 'its nodes have no times before a launch');
    const sinceMs = performance.now();
    for (;;) {
      const { core } = this;
      const { timeline, ticket, nth } = this.#timedLaunch(core);
      await core.core.waits.until(timeline, ticket, undefined, rest(opts, sinceMs));
      // `close` gives the events back.
      core.checkOpen();
      const endsMs = await core.timers?.ended(rest(opts, sinceMs));
      // All times must be those of one launch.
      if (endsMs !== undefined && core.memory.launch?.nth === nth) return timesOf(core.session.nodes, endsMs);
    }
  }

  /** The latest launch, whose nodes have times. */
  #timedLaunch(core: GraphCore<NodeTimers>): NonNullable<GraphCore['memory']['launch']> {
    core.checkOpen();
    const { label, memory, timers } = core;
    const facts = { device: core.core.name };
    if (timers === undefined) {
      const message = `Graph ${label} was captured without the option timing. Capture it with { timing: true }.`;
      throw new EventTimingError(message, 'timing-off', facts);
    }
    if (memory.launch !== undefined && core.isLaunched) return memory.launch;
    throw new EventTimingError(`Graph ${label} was not launched yet. Launch it first.`, 'never-recorded', facts);
  }

  /** The nodes and edges in the language of Graphviz, one cluster for each stream and each body of a condition: `cuGraphDebugDotPrint`. */
  toDot(): string {
    if (arguments.length > 0) refuseSurplus('toDot', arguments, 0);
    return Array.from(dotOf(this.label, this.core.session.nodes)).join('');
  }

  /**
   * The nodes and edges as a drawing, with a frame for each stream and each body of a condition: SVG for pages of light and dark colours.
   * Graphviz lays it out on a thread of its own, which takes seconds for some thousands of nodes. Rejects with UnavailableError if the
   * package `@viz-js/viz` is not installed.
   * @example await writeFile('step.svg', await step.toSvg());
   */
  toSvg(): Promise<string> {
    if (arguments.length > 0) refuseSurplus('toSvg', arguments, 0);
    return svgOf(this.label, this.core.session.nodes);
  }

  /**
   * Refuses further launches at once, and resolves when the submitted launches have finished: `cuGraphExecDestroy`. Frees the memory that
   * only the graph kept allocated. Closing twice is allowed.
   */
  async close(): Promise<void> {
    if (arguments.length > 0) refuseSurplus('close', arguments, 0);
    forgotten.unregister(this);
    const { core: device, memory } = this.core;
    const { launch } = memory;
    this.core.close();
    if (launch !== undefined && !device.isGone) await device.waits.until(launch.timeline, launch.ticket);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

describeAs(
  Graph.prototype,
  ({ label, nodes, device }) => `Graph ${label} of ${device.info.id} (${nodes.length} nodes)`,
  ({ label, nodes, device }) => ({ label, device: device.info.id, nodes: nodes.length }),
);
