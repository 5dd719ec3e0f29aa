// Reads a trace of Perfetto's own format as its trace processor does, with an independent decoder, and refuses what the trace processor would count
// as an error. The schema is the part of Perfetto's that traces of the library use: name, type and number of each field.
import protobuf from 'protobufjs';

const SCHEMA: Readonly<Record<string, string>> = {
  Trace: 'repeated TracePacket packet = 1;',
  TracePacket: `optional uint64 timestamp = 8; optional uint32 trusted_packet_sequence_id = 10; optional TrackEvent track_event = 11;
    optional InternedData interned_data = 12; optional uint32 sequence_flags = 13; optional TrackDescriptor track_descriptor = 60;`,
  TrackDescriptor: `optional uint64 uuid = 1; optional string name = 2; optional ProcessDescriptor process = 3; optional ThreadDescriptor thread = 4;
    optional uint64 parent_uuid = 5; optional CounterDescriptor counter = 8;`,
  ProcessDescriptor: 'optional int32 pid = 1; optional string process_name = 6;',
  ThreadDescriptor: 'optional int32 pid = 1; optional int64 tid = 2; optional string thread_name = 5;',
  CounterDescriptor: 'optional int32 unit = 3; optional string unit_name = 6;',
  TrackEvent: `repeated uint64 category_iids = 3; repeated DebugAnnotation debug_annotations = 4; optional int32 type = 9; optional uint64 name_iid = 10;
    optional uint64 track_uuid = 11; optional int64 counter_value = 30; optional double double_counter_value = 44; repeated fixed64 flow_ids = 47;
    repeated fixed64 terminating_flow_ids = 48;`,
  DebugAnnotation: `optional uint64 name_iid = 1; optional uint64 uint_value = 3; optional int64 int_value = 4; optional double double_value = 5;
    optional string string_value = 6;`,
  InternedData: 'repeated Interned event_categories = 1; repeated Interned event_names = 2; repeated Interned debug_annotation_names = 3;',
  Interned: 'optional uint64 iid = 1; optional string name = 2;',
};
const TRACE = protobuf
  .parse(
    `syntax = "proto2"; ${Object.entries(SCHEMA)
      .map(([name, fields]) => `message ${name} { ${fields} }`)
      .join(' ')}`,
    { keepCase: true },
  )
  .root.lookupType('Trace');

interface Descriptor {
  readonly uuid: number;
  readonly name?: string;
  readonly parent_uuid?: number;
  readonly process?: { readonly pid: number; readonly process_name: string };
  readonly thread?: { readonly pid: number; readonly tid: number; readonly thread_name: string };
  readonly counter?: { readonly unit?: number; readonly unit_name?: string };
}
interface Interned {
  readonly iid: number;
  readonly name: string;
}
interface Packet {
  readonly timestamp?: number;
  readonly trusted_packet_sequence_id: number;
  readonly sequence_flags?: number;
  readonly track_descriptor?: Descriptor;
  readonly interned_data?: Readonly<Record<'event_categories' | 'event_names' | 'debug_annotation_names', readonly Interned[]>>;
  readonly track_event?: {
    readonly type: number;
    readonly track_uuid: number;
    readonly name_iid?: number;
    readonly category_iids?: readonly number[];
    readonly debug_annotations?: readonly (Readonly<Record<string, string | number>> & { readonly name_iid: number })[];
    readonly counter_value?: number;
    readonly double_counter_value?: number;
    readonly flow_ids?: readonly number[];
    readonly terminating_flow_ids?: readonly number[];
  };
}

export interface PerfettoSlice {
  readonly process: string;
  readonly track: string;
  readonly name: string;
  readonly category: string;
  /** In nanoseconds; of an instant, `dur` is 0. */
  readonly ts: number;
  dur: number;
  /** How many slices of its track are around it. */
  readonly depth: number;
  readonly args: Readonly<Record<string, string | number>>;
}

export interface PerfettoTrace {
  readonly slices: readonly PerfettoSlice[];
  readonly flows: readonly (readonly [from: PerfettoSlice, to: PerfettoSlice])[];
  readonly counters: readonly {
    readonly process: string;
    readonly name: string;
    readonly unit: number | string;
    readonly values: [ts: number, value: number][];
  }[];
}

function must<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new Error(message);
  return value;
}

export function readPerfetto(bytes: Uint8Array): PerfettoTrace {
  const { packet: packets } = TRACE.toObject(TRACE.decode(bytes), { longs: Number }) as { readonly packet: readonly Packet[] };
  const texts = {
    event_categories: new Map<number, string>(),
    event_names: new Map<number, string>(),
    debug_annotation_names: new Map<number, string>(),
  };
  const tracks: Map<number, Descriptor> = new Map();
  let hasState = false;
  for (const { interned_data: data, track_descriptor: track, track_event: event, sequence_flags: flags = 0 } of packets) {
    hasState ||= flags === 1;
    if (event && !(hasState && flags === 2)) throw new Error('An event refers to texts before they were cleared.');
    for (const [kind, entries] of Object.entries(data ?? {}))
      for (const { iid, name } of entries) texts[kind as keyof typeof texts].set(iid, name);
    if (track) tracks.set(track.uuid, track);
  }
  const processOf = ({ process, parent_uuid }: Descriptor): string =>
    process?.process_name ?? processOf(must(tracks.get(parent_uuid ?? 0), `There is no parent ${parent_uuid}.`));
  const textOf = (kind: keyof typeof texts, iid: number): string => must(texts[kind].get(iid), `There is no ${kind} ${iid}.`);

  const slices: PerfettoSlice[] = [];
  const flows: (readonly [PerfettoSlice, PerfettoSlice])[] = [];
  const counters: Map<number, PerfettoTrace['counters'][number]> = new Map();
  const open: Map<number, PerfettoSlice[]> = new Map();
  const lastOfFlow: Map<number, PerfettoSlice> = new Map();
  const noteFlows = (slice: PerfettoSlice, begun: readonly number[] = [], ended: readonly number[] = []): void => {
    for (const id of begun) {
      if (lastOfFlow.has(id)) throw new Error(`Flow ${id} begins twice.`);
      lastOfFlow.set(id, slice);
    }
    for (const id of ended) {
      flows.push([must(lastOfFlow.get(id), `Flow ${id} ends before it begins.`), slice]);
      lastOfFlow.delete(id);
    }
  };
  const events = packets.flatMap(({ timestamp = 0, track_event: event }) => (event ? [{ timestamp, event }] : []));
  for (const { timestamp: ts, event } of events.toSorted((a, b) => a.timestamp - b.timestamp)) {
    const { track_uuid: uuid, type, flow_ids: begun, terminating_flow_ids: ended } = event;
    const track = must(tracks.get(uuid), `There is no track ${uuid}.`);
    const process = processOf(track);
    if (type === 4) {
      const { unit = 0, unit_name } = must(track.counter, `Track ${uuid} has a value and is no counter.`);
      const counter = counters.get(uuid) ?? { process, name: track.name!, unit: unit_name ?? unit, values: [] };
      counters.set(uuid, counter);
      counter.values.push([ts, must(event.counter_value ?? event.double_counter_value, 'A counter has no value.')]);
      continue;
    }
    const around = open.get(uuid) ?? [];
    open.set(uuid, around);
    if (type === 2) {
      const slice = must(around.pop(), `Track ${uuid} has an end without a begin.`);
      slice.dur = ts - slice.ts;
      noteFlows(slice, begun, ended);
      continue;
    }
    const args = (event.debug_annotations ?? []).map(({ name_iid, ...value }) => [
      textOf('debug_annotation_names', name_iid),
      Object.values(value)[0]!,
    ]);
    const slice: PerfettoSlice = {
      process,
      track: must(track.thread?.thread_name ?? track.name, `Track ${uuid} has no name.`),
      name: textOf('event_names', must(event.name_iid, 'A slice has no name.')),
      category: textOf('event_categories', event.category_iids![0]!),
      ts,
      dur: 0,
      depth: around.length,
      args: Object.fromEntries(args) as PerfettoSlice['args'],
    };
    slices.push(slice);
    if (type === 1) around.push(slice);
    noteFlows(slice, begun, ended);
  }
  if ([...open.values()].some(({ length }) => length > 0)) throw new Error('A slice has no end.');
  if (lastOfFlow.size > 0) throw new Error('A flow has no end.');
  return { slices, flows, counters: [...counters.values()] };
}
