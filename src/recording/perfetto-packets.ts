// Packets of Perfetto's own format, in protocol buffers: those messages of protos/perfetto/trace in Perfetto's source that a timeline needs.
import { PbfWriter } from 'pbf';
import type { Steps } from './counters.js';

// The numbers of fields.
const TRACE = { packet: 1 };
const PACKET = { timestamp: 8, sequence: 10, event: 11, interned: 12, flags: 13, track: 60 };
const TRACK = { uuid: 1, name: 2, process: 3, thread: 4, parent: 5, counter: 8 };
const PROCESS = { pid: 1, name: 6 };
const THREAD = { pid: 1, tid: 2, name: 5 };
const COUNTER = { unit: 3, unitName: 6 };
const EVENT = { category: 3, note: 4, type: 9, name: 10, track: 11, value: 30, doubleValue: 44, flow: 47, endedFlow: 48 };
const NOTE = { name: 1, whole: 4, double: 5, text: 6 };
const INTERNED = { categories: 1, names: 2, notes: 3 };
const TEXT = { id: 1, text: 2 };
// Values.
const TYPE = { begin: 1, end: 2, instant: 3, value: 4 };
const FLAGS = { stateCleared: 1, needsState: 2 };
const UNIT = { operations: 2, bytes: 3 };
const SEQUENCE = 1;

/** What is shown beside a slice. */
export type Notes = Readonly<Record<string, string | number | undefined>>;

export interface Slice {
  readonly track: number;
  readonly name: string;
  readonly category: string;
  readonly startMs: number;
  /** None: an instant. */
  readonly endMs?: number;
  readonly notes?: Notes;
  /** Flows that begin here, at the begin, and that end here, at the begin or the end. */
  readonly flows?: readonly number[];
  readonly endedFlows?: readonly number[];
  readonly flowsToEnd?: readonly number[];
}

type Write = (out: PbfWriter) => void;

function message(out: PbfWriter, field: number, write: Write): void {
  out.writeMessage(field, (_, inner) => write(inner), undefined);
}

/** Texts that packets refer to by number. */
class Texts {
  readonly #ids: Map<string, number> = new Map();

  idOf(text: string): number {
    let id = this.#ids.get(text);
    if (id === undefined) this.#ids.set(text, (id = this.#ids.size + 1));
    return id;
  }

  writeTo(out: PbfWriter, field: number): void {
    for (const [text, id] of this.#ids)
      message(out, field, (entry) => {
        entry.writeVarintField(TEXT.id, id);
        entry.writeStringField(TEXT.text, text);
      });
  }
}

/** Tracks are named by numbers, which each method that makes one returns. */
export class PerfettoPackets {
  readonly #startMs: number;
  readonly #tracks = new PbfWriter();
  readonly #events = new PbfWriter();
  readonly #categories = new Texts();
  readonly #names = new Texts();
  readonly #noteNames = new Texts();
  #count = 0;

  /** Times are told from `startMs` on, in nanoseconds: none may be earlier. */
  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  process(name: string, pid: number): number {
    return this.#track((track) =>
      message(track, TRACK.process, (process) => {
        process.writeVarintField(PROCESS.pid, pid);
        process.writeStringField(PROCESS.name, name);
      }),
    );
  }

  thread(name: string, pid: number, tid: number, parent: number): number {
    return this.#track((track) => {
      track.writeVarintField(TRACK.parent, parent);
      message(track, TRACK.thread, (thread) => {
        thread.writeVarintField(THREAD.pid, pid);
        thread.writeVarintField(THREAD.tid, tid);
        thread.writeStringField(THREAD.name, name);
      });
    });
  }

  /** Perfetto shows rows of one name and parent as one. */
  row(name: string, parent: number): number {
    return this.#track((track) => {
      track.writeStringField(TRACK.name, name);
      track.writeVarintField(TRACK.parent, parent);
    });
  }

  counter(name: string, parent: number, unit: keyof typeof UNIT | '/s', steps: Steps): void {
    const id = this.#track((track) => {
      track.writeStringField(TRACK.name, name);
      track.writeVarintField(TRACK.parent, parent);
      message(track, TRACK.counter, (counter) => {
        if (unit === '/s') counter.writeStringField(COUNTER.unitName, unit);
        else counter.writeVarintField(COUNTER.unit, UNIT[unit]);
      });
    });
    let shown: number | undefined;
    for (const [ms, value] of steps) {
      if (value === shown) continue;
      shown = value;
      this.#event(ms, TYPE.value, id, (event) => {
        if (Number.isInteger(value)) event.writeVarintField(EVENT.value, value);
        else event.writeDoubleField(EVENT.doubleValue, value);
      });
    }
  }

  slice({ track, name, category, startMs, endMs, notes = {}, flows = [], endedFlows = [], flowsToEnd = [] }: Slice): void {
    this.#event(startMs, endMs === undefined ? TYPE.instant : TYPE.begin, track, (event) => {
      event.writeVarintField(EVENT.category, this.#categories.idOf(category));
      event.writeVarintField(EVENT.name, this.#names.idOf(name));
      for (const flow of flows) event.writeFixed64Field(EVENT.flow, flow);
      for (const flow of endedFlows) event.writeFixed64Field(EVENT.endedFlow, flow);
      for (const [note, value] of Object.entries(notes)) if (value !== undefined) this.#note(event, note, value);
    });
    if (endMs === undefined) return;
    this.#event(endMs, TYPE.end, track, (event) => {
      for (const flow of flowsToEnd) event.writeFixed64Field(EVENT.endedFlow, flow);
    });
  }

  newFlow(): number {
    return ++this.#count;
  }

  /** Texts and tracks come before the events that name them. */
  finish(): Uint8Array {
    const head = new PbfWriter();
    message(head, TRACE.packet, (packet) => {
      packet.writeVarintField(PACKET.sequence, SEQUENCE);
      packet.writeVarintField(PACKET.flags, FLAGS.stateCleared);
      message(packet, PACKET.interned, (interned) => {
        this.#categories.writeTo(interned, INTERNED.categories);
        this.#names.writeTo(interned, INTERNED.names);
        this.#noteNames.writeTo(interned, INTERNED.notes);
      });
    });
    const parts = [head, this.#tracks, this.#events].map((part) => part.finish());
    const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  #note(event: PbfWriter, name: string, value: string | number): void {
    message(event, EVENT.note, (note) => {
      note.writeVarintField(NOTE.name, this.#noteNames.idOf(name));
      if (typeof value === 'string') note.writeStringField(NOTE.text, value);
      else if (Number.isInteger(value)) note.writeVarintField(NOTE.whole, value);
      else note.writeDoubleField(NOTE.double, value);
    });
  }

  #track(write: Write): number {
    const id = ++this.#count;
    message(this.#tracks, TRACE.packet, (packet) => {
      packet.writeVarintField(PACKET.sequence, SEQUENCE);
      message(packet, PACKET.track, (track) => {
        track.writeVarintField(TRACK.uuid, id);
        write(track);
      });
    });
    return id;
  }

  #event(ms: number, type: number, track: number, write: Write): void {
    message(this.#events, TRACE.packet, (packet) => {
      packet.writeVarintField(PACKET.timestamp, Math.round((ms - this.#startMs) * 1e6));
      packet.writeVarintField(PACKET.sequence, SEQUENCE);
      packet.writeVarintField(PACKET.flags, FLAGS.needsState);
      message(packet, PACKET.event, (event) => {
        event.writeVarintField(EVENT.type, type);
        event.writeVarintField(EVENT.track, track);
        write(event);
      });
    });
  }
}
