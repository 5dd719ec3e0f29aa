// `stream.launch(graph, values)`: checks the values, writes one entry for each slot, orders the launch and submits it. And `graph.upload`.
// Thread: owner.
import { Access, LaunchArg, LaunchRecord } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show, wrongDevice } from '../base/arguments.js';
import { UnsupportedError } from '../base/errors.js';
import { didYouMean } from '../base/nearest-name.js';
import { STREAM_STAYS } from '../base/uncloneable.js';
import type { StreamContext } from '../device/stream-context.js';
import { scalarBits } from '../elements/scalar-bits.js';
import { DTYPES } from '../elements/dtype.js';
import { CaptureSession } from '../graphs/capture-session.js';
import type { GraphCore } from '../graphs/graph-core.js';
import { type GivenArray, LaunchedNodes } from '../graphs/launched-nodes.js';
import { ArraySlot } from '../graphs/slots.js';
import { MAX_EXTENT } from '../kernels/launch-geometry.js';
import type { RecordAccesses } from '../ordering/access-tracker.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';

const ACCESS = { in: Access.READ, out: Access.WRITE, inout: Access.READ_WRITE } as const;

/** Submits a launch of the graph and returns its ticket. */
export function submitGraphLaunch(site: StreamContext, graph: GraphCore, values: unknown): number {
  const { core, timeline } = site;
  checkGraph(site, graph);
  if (timeline.recording instanceof CaptureSession) return embed(site, timeline.recording, graph, values);
  graph.checkContents();
  comeAfterLaunch(site, graph);
  const record = core.tracker.begin(site);
  try {
    const given: GivenArray[] = [];
    const entries = writeEntries(site, record, graph, values, given);
    graph.checkOpen();
    record.add(graph.memory, 0, graph.memory.byteLength, true);
    for (const other of graph.memory.conflicts) record.add(other, 0, other.byteLength, false);
    for (const { memory, start, end, isWrite } of graph.memory.crowded) record.add(memory, start, end, isWrite, false);
    record.order('graph', graph.label, core.tracker.areClocksKept ? new LaunchedNodes(graph, given) : undefined);
    graph.timers?.begin(timeline);
    const ticket = core.submit(timeline, core.encoder.launchGraph(timeline.slot, graph.handle, entries));
    const info = record.commit(ticket);
    for (const other of graph.usedCores) other.peerUsers.add(timeline, ticket);
    for (const partition of graph.partitions) partition.noteGraph(timeline, ticket);
    graph.launched({ timeline, ticket, info, isOrdered: site.ordering !== 'explicit' });
    return ticket;
  } catch (error) {
    record.abandon();
    throw error;
  }
}

/** Submits an upload of the graph and returns its ticket. */
export function submitGraphUpload(site: StreamContext, graph: GraphCore): number {
  const { core, timeline, ordering, timer } = site;
  checkGraph(site, graph);
  const { label, handle, memory } = graph;
  if (timeline.recording !== undefined) throw timeline.recording.refusal(timeline, 'unsupported-node', `it cannot upload graph ${label}`);
  comeAfterLaunch(site, graph);
  // The next launch waits for it on the device in every ordering, and to checked streams that is no race.
  const record = core.tracker.begin({ core, timeline, ordering, timer, isReadback: true });
  record.add(memory, 0, memory.byteLength, false);
  let ticket: number;
  try {
    record.order('upload-graph', label);
    ticket = core.submit(timeline, core.encoder.uploadGraph(timeline.slot, handle));
    graph.uploaded({ timeline, ticket, info: record.commit(ticket) });
  } catch (error) {
    record.abandon();
    throw error;
  }
  for (const other of graph.usedCores) other.peerUsers.add(timeline, ticket);
  for (const partition of graph.partitions) partition.noteGraph(timeline, ticket);
  return ticket;
}

/** Throws unless the stream can launch the graph. */
function checkGraph({ core, timeline }: StreamContext, graph: GraphCore): void {
  graph.checkOpen();
  for (const partition of graph.partitions) partition.checkOpen();
  if (timeline.partition !== undefined && graph.wholeStream !== undefined) {
    const message = `Stream ${timeline.label} cannot launch graph ${graph.label}: the stream is of a partition, and the graph has kernels of stream ${graph.wholeStream}, which uses the whole device. Capture them on a stream of a partition, or launch the graph on a stream without one.`;
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'graphs in partitions', { device: core.name, stream: timeline.label });
  }
  if (graph.core !== core) {
    throw wrongDevice('graph', graph, `Graph ${graph.label} ${belongsTo(graph.core.name, core.name)}.`);
  }
  for (const other of graph.otherCores) {
    const over = other.refuseIfOver();
    if (over !== undefined) throw over;
  }
}

/** One executable runs one launch after another, whatever the ordering of the stream. */
function comeAfterLaunch({ core, timeline }: StreamContext, { memory }: GraphCore): void {
  const { launch } = memory;
  if (launch === undefined) return;
  core.tracker.waitFor(core, timeline, { timeline: launch.timeline, ticket: launch.ticket, clock: launch.info.clock }, 'array');
}

/** Adds the nodes of the graph to a capture. Returns the ticket of the last one. */
function embed(site: StreamContext, session: CaptureSession, graph: GraphCore, values: unknown): number {
  const { core, timeline } = site;
  const { encoder } = core;
  const record = core.tracker.begin(site);
  try {
    const count = writeEntries(site, record, graph, values, []);
    graph.checkOpen();
    const entries = encoder.block.slice(LaunchRecord.BYTE_SIZE, LaunchRecord.BYTE_SIZE + count * LaunchArg.BYTE_SIZE);
    for (const { storage, start, end, isWrite } of graph.uses()) record.add(storage, start, end, isWrite, false);
    record.order('graph', graph.label);
    const nop = encoder.block.subarray(0, encoder.nop(timeline.slot));
    const ticket = session.embed(timeline, graph.session, entries, nop);
    record.commit(ticket);
    return ticket;
  } catch (error) {
    record.abandon();
    throw error;
  }
}

/** Writes the entries of the slots. Returns their number. `into` receives the arrays. */
function writeEntries(site: StreamContext, record: RecordAccesses, graph: GraphCore, values: unknown, into: GivenArray[]): number {
  const { label, slots } = graph;
  if (slots.length === 0 && values === undefined) return 0;
  if ((values as { readonly uncloneable?: unknown } | null | undefined)?.uncloneable === STREAM_STAYS) {
    const message = `The values of graph ${label} (${show(values)}) are a stream: stream.launch(graph) launches a graph on a stream, with ${namesOf(graph)}.`;
    throw badArgument('values', values, message);
  }
  // An array or another object of the library in place of an object of values.
  if (typeof values !== 'object' || values === null || 'uncloneable' in values)
    throw badArgument('values', values, `The values of graph ${label} (${show(values)}) are not an object with ${namesOf(graph)}.`);
  const given = values as Readonly<Record<string, unknown>>;
  const names = Object.keys(given);
  const wrong = names.find((name) => !slots.some((slot) => slot.name === name));
  if (wrong !== undefined) {
    const shown = wrong.slice(0, 80);
    const missing = slots.map(({ name }) => name).filter((name) => !names.includes(name));
    const message = `Value ${shown}${didYouMean(shown, missing)} is not a parameter of graph ${label}, which has ${namesOf(graph)}.`;
    throw badArgument(wrong, given[wrong], message);
  }
  const { encoder } = site.core;
  let at = 0;
  const arrays: { readonly name: string; readonly array: StridedArray; readonly isWrite: boolean }[] = [];
  for (const slot of slots) {
    const value = given[slot.name];
    if (value === undefined) throw badArgument(slot.name, value, `Value ${slot.name} of graph ${label} is missing.`);
    if (slot instanceof ArraySlot) {
      const array = checkArray(site, graph, slot, value);
      checkLength(graph, slot, array);
      const { storage, byteOffset, byteLength } = array;
      const isWrite = slot.access !== 'in';
      if (graph.conflictsWith(storage, byteOffset, byteOffset + byteLength, isWrite)) {
        const message = `Value ${slot.name} of graph ${label} is array ${array.label}, which the graph itself uses: give another array.`;
        throw badArgument(slot.name, value, message);
      }
      const shared = arrays.find((other) => (isWrite || other.isWrite) && overlap(other.array, array));
      if (shared !== undefined) {
        const message = `Values ${shared.name} and ${slot.name} of graph ${label} are overlapping arrays, and the graph writes one of them: declare one inout parameter instead of two.`;
        throw badArgument(slot.name, value, message);
      }
      arrays.push({ name: slot.name, array, isWrite });
      into.push({ slot, memory: storage, start: byteOffset, end: byteOffset + byteLength });
      encoder.memoryArg(at++, accessOf(slot, array), storage.handle, storage.base + byteOffset);
      for (const dimension of array.shape) encoder.intArg(at++, 4, dimension, 0);
      record.add(storage, byteOffset, byteOffset + byteLength, isWrite, slot.access !== 'out');
    } else {
      const { low, high } = scalarBits(slot.dtype, value, slot.name);
      encoder.intArg(at++, DTYPES[slot.dtype].byteSize, low, high);
    }
  }
  for (const slot of graph.session.lengths) encoder.intArg(at++, 8, (given[slot.name] as StridedArray).length, 0);
  return at;
}

/** A graph that leaves elements of the memory as they are leaves their poison, too. */
function accessOf({ access, memory }: ArraySlot, { shape, byteLength, storage }: StridedArray): number {
  const isWhole = byteLength === storage.byteLength && memory.isCovered(shape);
  return access === 'in' || isWhole ? ACCESS[access] : ACCESS[access] | Access.PART;
}

/** Throws if copies and fills of the graph need an array of another length. */
function checkLength({ label, session }: GraphCore, slot: ArraySlot, { length }: StridedArray): void {
  const need = session.needs.get(slot);
  if (need === undefined) return;
  const { least, exact = length } = need;
  if (length === exact && length >= least) return;
  const [limit, needed] = need.exact === undefined ? [least, `at least ${least}`] : [exact, String(exact)];
  throw badArgument(
    slot.name,
    length,
    `Value ${slot.name} of graph ${label} has ${length} elements; the graph copies or fills ${needed}.`,
    limit,
  );
}

/** Have two contiguous arrays bytes in common? */
function overlap(one: StridedArray, other: StridedArray): boolean {
  if (one.storage !== other.storage) return false;
  return one.byteOffset < other.byteOffset + other.byteLength && other.byteOffset < one.byteOffset + one.byteLength;
}

function checkArray({ core }: StreamContext, { label }: GraphCore, slot: ArraySlot, value: unknown): StridedArray {
  const what = `Value ${slot.name} of graph ${label}`;
  if (value instanceof ArraySlot) {
    const instead = `a graph that is launched in a capture gets arrays. Capture its operations by a function that both captures call`;
    throw badArgument(slot.name, value, `${what} is slot ${value.name} of the capture: ${instead}.`);
  }
  const bad = (message: string, limit?: unknown): Error => badArgument(slot.name, value, `${what} ${message}`, limit);
  if (!(value instanceof StridedArray))
    throw bad(`(${show(value)}) is not a device array${value instanceof PinnedArray ? ': copy it to one before the launch' : ''}.`);
  if (value.isDisposed) throw value.disposedError();
  if (value.core !== core) throw bad(`${belongsTo(value.core.name, core.name)}.`, core.name);
  if (value.dtype !== slot.dtype) throw bad(`has dtype ${value.dtype}; the graph takes ${slot.dtype}.`, slot.dtype);
  if (value.shape.length !== slot.rank) throw bad(`has ${value.shape.length} dimensions; the graph takes ${slot.rank}.`, slot.rank);
  if (!value.isContiguous) throw bad(`(${value.label}) is not contiguous: clone() it first.`);
  if (value.length > MAX_EXTENT) throw bad(`has more elements (${value.length}) than a kernel can index (${MAX_EXTENT}).`, MAX_EXTENT);
  return value;
}

function namesOf({ slots }: GraphCore): string {
  return slots.length === 0 ? 'no values' : `values for ${slots.map(({ name }) => name).join(', ')}`;
}
