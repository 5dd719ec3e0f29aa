// Graphs on a device of a test: their nodes are executed in their order when the launch's time is over, which is that of the longest path.
import { fillIn } from '../core/graphs/slot-entries.js';
import {
  ConditionKind,
  GraphBody,
  GraphCondition,
  GraphDefinition,
  GraphNodeHead,
  GraphPatch,
  LaunchArg,
  LaunchGraphRecord,
  Opcode,
  RecordEventRecord,
  RecordHeader,
} from '../protocol/protocol.gen.js';
import type { Block, Effect } from './memory.js';

/** A node of a definition. */
export interface GraphNode {
  readonly device: number;
  readonly after: readonly number[];
  readonly record: Uint8Array<ArrayBuffer>;
  /** Parts of its record that an entry of each launch of the graph replaces. */
  readonly patches: { readonly arg: number; readonly entry: number }[];
  /** In place of the record. */
  readonly condition?: ConditionNode;
}

/** A node that runs its bodies as often as a value says. */
export interface ConditionNode {
  readonly kind: ConditionKind;
  readonly handle: number;
  readonly offset: number;
  readonly bodies: readonly (readonly GraphNode[])[];
}

/** A node that can run: how long it takes, and what it does. */
export interface NodeStep {
  readonly ms: number;
  readonly effect: Effect;
}

/** The nodes of a definition. Core wrote the bytes, so they are not checked. */
export function readGraph(bytes: Uint8Array): GraphNode[] {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  let at: number = GraphDefinition.BYTE_SIZE;
  const readCondition = (): ConditionNode => {
    const [kind, count, handle] = [GraphCondition.KIND, GraphCondition.BODY_COUNT, GraphCondition.HANDLE].map((field) =>
      view.getUint32(at + field, true),
    ) as [ConditionKind, number, number];
    const offset = Number(view.getBigUint64(at + GraphCondition.OFFSET, true));
    at += GraphCondition.BYTE_SIZE;
    const bodies = Array.from({ length: count }, () => {
      const length = view.getUint32(at + GraphBody.NODE_COUNT, true);
      at += GraphBody.BYTE_SIZE;
      return Array.from({ length }, readNode);
    });
    return { kind, handle, offset, bodies };
  };
  const readNode = (): GraphNode => {
    const [device, count, length] = [GraphNodeHead.DEVICE, GraphNodeHead.AFTER_COUNT, GraphNodeHead.RECORD_BYTES].map((field) =>
      view.getUint32(at + field, true),
    ) as [number, number, number];
    at += GraphNodeHead.BYTE_SIZE;
    const after = Array.from({ length: count }, (_, n) => view.getUint32(at + 4 * n, true));
    at += 4 * (count + (count % 2));
    const record = copy.slice(at, at + length);
    at += length;
    return { device, after, record, patches: [], ...(length === 0 && { condition: readCondition() }) };
  };
  const nodes = Array.from({ length: view.getUint32(GraphDefinition.NODE_COUNT, true) }, readNode);
  for (let left = view.getUint32(GraphDefinition.PATCH_COUNT, true); left > 0; left--) {
    const { patches } = nodes[view.getUint32(at + GraphPatch.NODE, true)] as GraphNode;
    patches.push({ arg: view.getUint32(at + GraphPatch.ARG, true), entry: view.getUint32(at + GraphPatch.ENTRY, true) });
    at += GraphPatch.BYTE_SIZE;
  }
  return nodes;
}

/** The record of a node with the entries of a LAUNCH_GRAPH record. */
export function filledIn({ record, patches }: GraphNode, launch: DataView): DataView {
  const bytes = record.slice();
  for (const { arg, entry } of patches) {
    const from = launch.byteOffset + LaunchGraphRecord.BYTE_SIZE + entry * LaunchArg.BYTE_SIZE;
    fillIn(bytes, arg, new Uint8Array(launch.buffer, from, LaunchArg.BYTE_SIZE));
  }
  return new DataView(bytes.buffer);
}

/** The longest path through the nodes. */
export function graphMs(nodes: readonly GraphNode[], steps: readonly NodeStep[]): number {
  return Math.max(0, ...nodeEndsMs(nodes, steps));
}

/** The effect, which then also enters in `times` when the nodes of a launch that begins at `beginMs` record events, by handle. */
export function withTimes(
  nodes: readonly GraphNode[],
  steps: readonly NodeStep[],
  effect: Effect,
  beginMs: number,
  times: Map<number, number>,
): Effect {
  const run = (): void => {
    effect.run();
    const endsMs = nodeEndsMs(nodes, steps);
    for (const [n, { record, condition }] of nodes.entries()) {
      if (condition !== undefined) continue;
      const view = new DataView(record.buffer);
      if (view.getUint16(RecordHeader.OPCODE, true) !== Opcode.RECORD_EVENT) continue;
      times.set(view.getUint32(RecordEventRecord.HANDLE, true), beginMs + (endsMs[n] as number));
    }
  };
  return { ...effect, run };
}

/** When each node ends: the longest path to it. */
function nodeEndsMs(nodes: readonly GraphNode[], steps: readonly NodeStep[]): readonly number[] {
  const ends: number[] = [];
  for (const [n, { after }] of nodes.entries())
    ends.push(Math.max(0, ...after.map((earlier) => ends[earlier] as number)) + (steps[n] as NodeStep).ms);
  return ends;
}

/** All effects as one. It reads what a node reads before an earlier node has written it as a whole. `onNode` is called before each node runs. */
export function graphEffect(steps: readonly NodeStep[], onNode: (node: number) => void): Effect {
  const reads = new Set<Block>();
  const writes = new Set<Block>();
  const wholes = new Set<Block>();
  for (const { effect } of steps) {
    for (const block of effect.reads) if (!wholes.has(block)) reads.add(block);
    for (const block of effect.writes) {
      writes.add(block);
      if (effect.isWhole && !reads.has(block)) wholes.add(block);
    }
  }
  const run = (): void => {
    for (const [n, { effect }] of steps.entries()) {
      onNode(n);
      effect.run();
    }
    for (const block of wholes) block.poison = 0;
  };
  return { reads: [...reads], writes: [...writes], isWhole: false, run };
}

/** What the nodes of a graph ask of the devices. Undefined: the memory is not there yet. */
interface Devices {
  readonly step: (device: number, record: DataView) => NodeStep | undefined;
  readonly block: (device: number, handle: number) => Block | undefined;
}

/** The steps of a graph, or of a body, in a launch; undefined while memory is not there yet. */
export function graphSteps(nodes: readonly GraphNode[], launch: DataView, devices: Devices): NodeStep[] | undefined {
  const steps: NodeStep[] = [];
  for (const node of nodes) {
    const { device, condition } = node;
    const step = condition === undefined ? devices.step(device, filledIn(node, launch)) : conditionStep(device, condition, launch, devices);
    if (step === undefined) return undefined;
    steps.push(step);
  }
  return steps;
}

/** A condition takes the time of its longest body, once: how often a loop will run is not known when the launch begins. */
function conditionStep(device: number, condition: ConditionNode, launch: DataView, devices: Devices): NodeStep | undefined {
  const { kind, handle, offset } = condition;
  const value = devices.block(device, handle);
  const effects: Effect[] = [];
  let ms = 0;
  for (const body of condition.bodies) {
    const steps = graphSteps(body, launch, devices);
    if (steps === undefined) return undefined;
    effects.push(graphEffect(steps, () => undefined));
    ms = Math.max(ms, graphMs(body, steps));
  }
  if (value === undefined) return undefined;
  const read = (): number => new DataView(value.bytes.buffer, value.bytes.byteOffset).getInt32(offset, true);
  const run = (): void => {
    if (kind === ConditionKind.WHILE) while (read() !== 0) effects[0]?.run();
    else if (kind === ConditionKind.SWITCH) effects[read()]?.run();
    else effects[read() === 0 ? 1 : 0]?.run();
  };
  const reads = [value, ...effects.flatMap((effect) => effect.reads)];
  return { ms, effect: { reads, writes: effects.flatMap(({ writes }) => writes), isWhole: false, run } };
}
