// The nodes of a graph as the capture lists them.
import { type ConditionKind, Opcode } from '../../protocol/protocol.gen.js';
import type { OperationKind } from '../base/snapshots.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import type { GraphLaunch } from '../ordering/tracked-memory.js';
import type { SlotUse, Timeline } from '../timeline/timeline.js';

/** The stream that a node was captured on. */
export interface CapturedStream {
  readonly core: DeviceCore;
  /** The label of the stream. */
  readonly label: string;
  readonly timeline: Timeline;
}

/**
 * What a node of a graph does. 'empty' does nothing: it joins other nodes (`cuGraphAddEmptyNode`). Launching a graph in a capture adds one that
 * comes after all nodes of the embedded graph and has its label. 'if', 'while' and 'switch' run bodies as an array on the device says.
 */
export type GraphNodeKind = OperationKind | 'empty' | 'if' | 'while' | 'switch';

/** What a node runs that has bodies: `captureIf`, `captureWhile`, `captureSwitch`. */
export interface Condition {
  readonly kind: ConditionKind;
  /** The device memory that contains the 4 bytes which the condition reads, and the byte where they begin. */
  readonly handle: number;
  readonly offset: number;
  /** In a body, `after` counts its own nodes. */
  readonly bodies: readonly (readonly CapturedNode[])[];
}

/** A record that uses memory of a graph and may not have finished. */
export type PendingUse = Pick<GraphLaunch, 'timeline' | 'ticket' | 'info'>;

/** What other code submits for a node: a function that the capture does not call itself. */
export interface ExternalNode {
  /** Has the function called once. Returns the record that waits for the addresses of its arrays, until it is over. */
  begin(): PendingUse | undefined;
  /** A capture or graph has a node of it, until one call of `drop` or `dropAfter`. */
  keep(): void;
  drop(): void;
  /** As `drop` when the stream has reached the ticket. The holder needs no call from now on unless `isUsed`. */
  dropAfter(timeline: Timeline, ticket: number, isUsed: boolean): void;
}

/** A launch of a graph, or the node that embeds one. */
export interface Launched {
  readonly status: string;
  whenOver(settle: () => void): void;
}

/** What has to do with each launch of a graph: the communicator of collectives among its nodes. */
export interface LaunchParty {
  /** Throws if the graph cannot be launched any more. */
  checkWorks(): void;
  /** The launch comes next on the stream, which may be captured. Throws as `checkWorks`. */
  before(site: StreamContext): void;
  /** It was submitted. */
  after(site: StreamContext, ticket: number, launch: Launched): void;
}

/** One record of the graph. */
export interface CapturedNode {
  readonly stream: CapturedStream;
  /** Empty for a condition. */
  readonly record: Uint8Array<ArrayBuffer>;
  readonly condition?: Condition | undefined;
  /** The nodes that it comes after, by number, all smaller than its own. */
  readonly after: readonly number[];
  kind: GraphNodeKind;
  label: string | undefined;
  slots: readonly SlotUse[];
  /** The argument that tells a kernel with grid barriers its slot. BarrierSlots has the slot. */
  barrierArg?: number | undefined;
}

/** A node of a graph that is embedded. `streams`: the streams of the graph's nodes, with their copies. */
export function copyNode(node: CapturedNode, streams: Map<CapturedStream, CapturedStream>): CapturedNode {
  const { core, label, timeline } = node.stream;
  const stream = streams.get(node.stream) ?? { core, label, timeline };
  streams.set(node.stream, stream);
  const { condition } = node;
  if (condition === undefined) return { ...node, stream };
  const bodies = condition.bodies.map((body) => body.map((inner) => copyNode(inner, streams)));
  return { ...node, stream, condition: { ...condition, bodies } };
}

/** The operations that can be nodes, by opcode. */
export const KINDS: ReadonlyMap<number, CapturedNode['kind']> = new Map([
  [Opcode.LAUNCH, 'launch'],
  [Opcode.COPY, 'copy'],
  [Opcode.COPY_STRIDED, 'copy'],
  [Opcode.FILL, 'fill'],
  [Opcode.FILL_STRIDED, 'fill'],
  [Opcode.NOP, 'empty'],
  [Opcode.RECORD_EVENT, 'record'],
]);

/** What the other records are, in messages. */
export const REFUSED: ReadonlyMap<number, string> = new Map([
  [Opcode.HOLD, 'a hold: hold the stream before or after a launch of the graph'],
  [
    Opcode.EXTERNAL,
    'an external function on this device, where the function does the work itself and there is no call to record: call it before or after a launch of the graph',
  ],
  [Opcode.WAIT_EVENT, 'a wait for an event of another process'],
  [Opcode.ADOPT, 'the adoption of an array'],
  [Opcode.ALLOC_ARRAY, 'a new texture: create it before the capture'],
  [Opcode.CREATE_TEXTURE, 'a new texture: create it before the capture'],
  [Opcode.COPY_ARRAY, 'copies to and from textures'],
]);

/** How many elements the arrays of a slot need for the copies and fills of the graph. */
export interface SlotNeed {
  readonly least: number;
  /** The number that they must have, because a copy moves all of them. */
  readonly exact: number | undefined;
}
