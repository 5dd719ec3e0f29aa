// A graph's definition as the device reads it: the records of its nodes with their dependencies, and where the entries of a launch go.
// native/protocol/protocol.json describes the format.
import {
  GraphBody,
  GraphCondition,
  GraphDefinition,
  GraphNodeHead,
  GraphPatch,
  LaunchArg,
  LaunchRecord,
} from '../../protocol/protocol.gen.js';
import type { CapturedNode } from './captured-node.js';

/** What the definition of a graph has of a node. */
export interface DefinedNode extends Pick<CapturedNode, 'record' | 'after' | 'slots' | 'condition' | 'barrierArg'> {
  readonly stream: Pick<CapturedNode['stream'], 'core'> & Partial<Pick<CapturedNode['stream'], 'timeline'>>;
}

/** Encodes the nodes of a graph whose launches have `entryCount` entries. `slotOf`: the slot of a node with a grid barrier. */
export function encodeDefinition(
  nodes: readonly DefinedNode[],
  entryCount: number,
  slotOf: (node: DefinedNode) => number | undefined = () => undefined,
): Uint8Array<ArrayBuffer> {
  const patchCount = nodes.reduce((sum, { slots }) => sum + slots.length, 0);
  const bytes = new Uint8Array(GraphDefinition.BYTE_SIZE + nodesBytes(nodes) + patchCount * GraphPatch.BYTE_SIZE);
  const view = new DataView(bytes.buffer);
  const word = (at: number, value: number): void => view.setUint32(at, value, true);
  word(GraphDefinition.NODE_COUNT, nodes.length);
  word(GraphDefinition.PATCH_COUNT, patchCount);
  word(GraphDefinition.ENTRY_COUNT, entryCount);
  let at = writeNodes(view, GraphDefinition.BYTE_SIZE, nodes, slotOf);
  for (const [node, { slots }] of nodes.entries()) {
    for (const { arg, entry } of slots) {
      word(at + GraphPatch.NODE, node);
      word(at + GraphPatch.ARG, arg);
      word(at + GraphPatch.ENTRY, entry);
      at += GraphPatch.BYTE_SIZE;
    }
  }
  return bytes;
}

/** Writes the nodes of a graph or of a body at `at`, and returns where they end. */
function writeNodes(view: DataView, at: number, nodes: readonly DefinedNode[], slotOf: (node: DefinedNode) => number | undefined): number {
  const word = (offset: number, value: number): void => view.setUint32(at + offset, value, true);
  const bytes = new Uint8Array(view.buffer);
  for (const node of nodes) {
    const { stream, after, record, condition, barrierArg } = node;
    word(GraphNodeHead.DEVICE, stream.core.channel.id);
    word(GraphNodeHead.AFTER_COUNT, after.length);
    word(GraphNodeHead.RECORD_BYTES, record.byteLength);
    word(GraphNodeHead.PARTITION, stream.timeline?.partition?.id ?? 0);
    at += GraphNodeHead.BYTE_SIZE;
    after.forEach((earlier, index) => word(4 * index, earlier));
    at += afterBytes(after);
    bytes.set(record, at);
    const slot = barrierArg === undefined ? undefined : slotOf(node);
    if (barrierArg !== undefined && slot !== undefined)
      view.setBigUint64(at + LaunchRecord.BYTE_SIZE + barrierArg * LaunchArg.BYTE_SIZE + LaunchArg.VALUE, BigInt(slot), true);
    at += record.byteLength;
    if (condition === undefined) continue;
    word(GraphCondition.KIND, condition.kind);
    word(GraphCondition.BODY_COUNT, condition.bodies.length);
    word(GraphCondition.HANDLE, condition.handle);
    view.setBigUint64(at + GraphCondition.OFFSET, BigInt(condition.offset), true);
    at += GraphCondition.BYTE_SIZE;
    for (const body of condition.bodies) {
      word(GraphBody.NODE_COUNT, body.length);
      at = writeNodes(view, at + GraphBody.BYTE_SIZE, body, slotOf);
    }
  }
  return at;
}

function nodesBytes(nodes: readonly DefinedNode[]): number {
  let size = 0;
  for (const { after, record, condition } of nodes) {
    size += GraphNodeHead.BYTE_SIZE + afterBytes(after) + record.byteLength;
    if (condition === undefined) continue;
    size += GraphCondition.BYTE_SIZE;
    for (const body of condition.bodies) size += GraphBody.BYTE_SIZE + nodesBytes(body);
  }
  return size;
}

/** The dependencies of a node are padded to 8 bytes. */
function afterBytes(after: readonly number[]): number {
  return (after.length + (after.length % 2)) * 4;
}
