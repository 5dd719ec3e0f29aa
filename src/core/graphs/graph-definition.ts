// A graph's definition as the device reads it: the records of its nodes with their dependencies, and where the entries of a launch go.
// native/protocol/protocol.json describes the format.
import { GraphDefinition, GraphNodeHead, GraphPatch } from '../../protocol/protocol.gen.js';
import type { CapturedNode } from './capture-session.js';

/** What the definition of a graph has of a node. */
export interface DefinedNode extends Pick<CapturedNode, 'record' | 'after' | 'slots'> {
  readonly stream: Pick<CapturedNode['stream'], 'core'>;
}

/** Encodes the nodes of a graph whose launches have `entryCount` entries. */
export function encodeDefinition(nodes: readonly DefinedNode[], entryCount: number): Uint8Array<ArrayBuffer> {
  const patchCount = nodes.reduce((sum, { slots }) => sum + slots.length, 0);
  let size = GraphDefinition.BYTE_SIZE + patchCount * GraphPatch.BYTE_SIZE;
  for (const { after, record } of nodes) size += GraphNodeHead.BYTE_SIZE + afterBytes(after) + record.byteLength;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  const word = (at: number, value: number): void => view.setUint32(at, value, true);
  word(GraphDefinition.NODE_COUNT, nodes.length);
  word(GraphDefinition.PATCH_COUNT, patchCount);
  word(GraphDefinition.ENTRY_COUNT, entryCount);
  let at: number = GraphDefinition.BYTE_SIZE;
  for (const { stream, after, record } of nodes) {
    word(at + GraphNodeHead.DEVICE, stream.core.channel.id);
    word(at + GraphNodeHead.AFTER_COUNT, after.length);
    word(at + GraphNodeHead.RECORD_BYTES, record.byteLength);
    at += GraphNodeHead.BYTE_SIZE;
    after.forEach((node, index) => word(at + 4 * index, node));
    at += afterBytes(after);
    bytes.set(record, at);
    at += record.byteLength;
  }
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

/** The dependencies of a node are padded to 8 bytes. */
function afterBytes(after: readonly number[]): number {
  return (after.length + (after.length % 2)) * 4;
}
