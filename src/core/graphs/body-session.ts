// The capture of one body of a condition: the operations of one stream, which become the nodes of the body.
//
// While it runs, the capture around it takes no operations. The body orders its nodes among themselves with stand-ins of its own; the
// condition counts as the reader and writer of everything that its bodies use. Nodes of a body keep the parameters that they were captured
// with, run on one device, and nothing in the host happens at them, which is what backends can do.
// Thread: owner.
import { MAX_CONDITION_DEPTH, MemorySpace } from '../../protocol/protocol.gen.js';
import type { CaptureError } from '../base/errors.js';
import type { DeviceCore } from '../device/device-core.js';
import { Storage } from '../memory/storage.js';
import type { CapturedAllocation, Timeline } from '../timeline/timeline.js';
import { CaptureSession } from './capture-session.js';
import type { CapturedNode } from './captured-node.js';
import { ArraySlot, ScalarSlot } from './slots.js';

export class BodySession extends CaptureSession {
  readonly #core: DeviceCore;
  readonly #around: CaptureSession;
  readonly #timeline: Timeline;
  /** The call that the body was given to. */
  readonly #call: string;
  override readonly depth: number;

  /** `timeline`: of the stream, in the capture around the body. Throws CaptureError if that is nested too deep. */
  constructor(core: DeviceCore, timeline: Timeline, around: CaptureSession, call: string) {
    super(around.label, [], around.isCall);
    this.#core = core;
    this.#around = around;
    this.#timeline = timeline;
    this.#call = call;
    this.depth = around.depth + 1;
    if (this.depth > MAX_CONDITION_DEPTH) throw this.#refusal(this.#tooDeep(this.depth));
  }

  override join(core: DeviceCore, outside: Timeline): Timeline {
    if (core !== this.#core) throw this.#refusal(`it cannot use memory of device ${core.name}: a body runs on one device`);
    if (outside !== this.#timeline)
      throw this.#refusal(`stream ${outside.label} of device ${core.name} cannot join the capture: a body has one stream`, 'isolation');
    return super.join(core, outside);
  }

  override follow(timeline: Timeline, other: Timeline, ticket: number, nodes?: readonly number[]): void {
    if (other.recording !== this)
      throw this.#refusal(`it cannot wait for stream ${other.label}; wait before the ${this.#call}`, 'isolation');
    super.follow(timeline, other, ticket, nodes);
  }

  override entryOf(slot: object): never {
    const name = slot instanceof ScalarSlot || slot instanceof ArraySlot ? ` ${slot.name}` : '';
    throw this.#refusal(
      `slot${name} cannot be used, because bodies do not get the values of a launch; let a kernel before the ${this.#call} write the value to an array`,
    );
  }

  override addHost(): never {
    throw this.#refusal('it cannot call a host function');
  }

  /** The library's own memory. A body may run again, or not at all, so it shares none. */
  override addAllocation(memory: object, allocation?: CapturedAllocation): void {
    super.addAllocation(memory);
    allocation?.bind(undefined);
  }

  override own(): Timeline {
    return this.#around.own(this.#timeline);
  }

  override outside(): never {
    throw this.#refusal(`it cannot allocate an array; allocate it before the ${this.#call}`);
  }

  override embed(timeline: Timeline, graph: CaptureSession, entries: Uint8Array, nop: Uint8Array): number {
    if (graph.hostFunctions.length > 0) throw this.#refusal('it cannot contain a graph with a host function');
    if (graph.events.length > 0) throw this.#refusal('it cannot contain a graph that records events with timing');
    const other = graph.nodes.find(({ stream }) => stream.core !== this.#core);
    if (other !== undefined) throw this.#refusal(`it cannot contain a graph with nodes on device ${other.stream.core.name}`);
    const depth = this.depth + depthOf(graph.nodes);
    if (depth > MAX_CONDITION_DEPTH) throw this.#refusal(this.#tooDeep(depth));
    return super.embed(timeline, graph, entries, nop);
  }

  override memoryOf<M extends object>(memory: M): M {
    if (memory instanceof Storage && memory.core !== this.#core && memory.space === MemorySpace.DEVICE)
      throw this.#refusal(`it cannot use ${memory.label} of device ${memory.core.name}`);
    return super.memoryOf(memory);
  }

  #tooDeep(depth: number): string {
    return `the nesting depth of the conditions (${depth}) exceeds the limit (${MAX_CONDITION_DEPTH})`;
  }

  #refusal(what: string, reason: 'isolation' | 'unsupported-node' = 'unsupported-node'): CaptureError {
    return this.refusal(this.#timeline, reason, `in the body of a ${this.#call}, ${what}`);
  }
}

/** How deep the conditions among the nodes are nested. */
function depthOf(nodes: readonly CapturedNode[]): number {
  return Math.max(0, ...nodes.flatMap(({ condition }) => condition?.bodies.map((body) => 1 + depthOf(body)) ?? []));
}
