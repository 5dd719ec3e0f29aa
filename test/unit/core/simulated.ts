// Devices that execute their records on plain bytes, in any order that the records allow: the caller chooses which stream
// runs next. A missing wait shows as wrong bytes, a use of unallocated or freed memory as an error.
import type { DeviceName } from '../../../src/core/api/device-info.js';
import type { Fixture } from './fake-channel.js';
import {
  AllocRecord,
  CopyRecord,
  CopyStridedRecord,
  FillRecord,
  FillStridedRecord,
  FreeRecord,
  MemorySpace,
  Status,
  StridedAxis,
  WaitRecord,
} from '../../../src/protocol/protocol.gen.js';
import type { BackendName, ChannelStats } from '../../../src/protocol/reports.js';
import { FakeChannel, fixture, type Submitted } from './fake-channel.js';

/** Bytes that were never written. */
const GARBAGE = 0xa5;

/** One that keeps the host memory it is told of, and gives it back. */
export class SimulatedChannel extends FakeChannel {
  readonly memory: Map<number, Uint8Array> = new Map();
  readonly host: Map<number, Uint8Array> = new Map();
  /** Called when memory is to be bound later than the call that says so. */
  readonly later: (() => void)[] = [];
  /** The number of records that are accepted before one is refused; negative: no limit. */
  accepts = -1;
  pendingRecords = 0;
  liveStaging = 0;
  mostStaging = 0;
  readonly #staging: Map<number, number> = new Map();

  override submit(bytes: number): number {
    return this.accepts-- === 0 ? -Status.LIMIT : super.submit(bytes);
  }

  override stats(): ChannelStats {
    return { ...super.stats(), pendingRecords: this.pendingRecords };
  }

  override register(handle: number, buffer: ArrayBufferLike, byteOffset: number, byteLength: number, isLocked: boolean): void {
    super.register(handle, buffer, byteOffset, byteLength, isLocked);
    const own = buffer instanceof ArrayBuffer ? structuredClone(buffer, { transfer: [buffer] }) : buffer;
    this.later.push(() => this.host.set(handle, new Uint8Array(own, byteOffset, byteLength)));
  }

  override lend(handle: number, byteLength: number): void {
    super.lend(handle, byteLength);
    this.later.push(() => this.host.set(handle, new Uint8Array(byteLength)));
  }

  override collect(handle: number): Promise<ArrayBuffer> {
    const lent = this.host.get(handle);
    if (lent === undefined) throw new Error(`host memory ${handle} is not lent`);
    this.#unbind(handle);
    return Promise.resolve(lent.buffer as ArrayBuffer);
  }

  override unregister(handle: number): Promise<void> {
    this.#unbind(handle);
    return super.unregister(handle);
  }

  #unbind(handle: number): void {
    for (const bind of this.later.splice(0)) bind();
    if (!this.host.delete(handle)) throw new Error(`host memory ${handle} was not registered`);
  }

  allocate(handle: number, bytes: number, kind: number): void {
    if (this.memory.has(handle)) throw new Error(`memory ${handle} is bound twice`);
    this.memory.set(handle, new Uint8Array(bytes).fill(GARBAGE));
    if (kind !== 1) return;
    this.#staging.set(handle, bytes);
    this.liveStaging += bytes;
    this.mostStaging = Math.max(this.mostStaging, this.liveStaging);
  }

  free(handle: number): void {
    if (!this.memory.delete(handle)) throw new Error(`memory ${handle} is freed twice`);
    this.liveStaging -= this.#staging.get(handle) ?? 0;
  }
}

interface Queue {
  readonly channel: SimulatedChannel;
  readonly records: Submitted[];
}

/** Devices whose records may name each other. */
export class World {
  readonly fixtures: Fixture[] = [];
  readonly channels: SimulatedChannel[] = [];
  readonly #taken: number[] = [];
  readonly #queues: Map<string, Queue> = new Map();
  readonly #reached: Map<string, number> = new Map();

  add(backend: BackendName, id: DeviceName): Fixture {
    const channel = new SimulatedChannel(10 + this.channels.length, backend);
    const made = fixture(channel, this.fixtures[0]?.progress, id);
    this.channels.push(channel);
    this.fixtures.push(made);
    this.#taken.push(0);
    return made;
  }

  /** Executes up to `steps` records; `choose(n)` says which of n runnable streams is next. Says whether all is done. */
  run(choose: (count: number) => number, steps: number = Number.POSITIVE_INFINITY): boolean {
    for (let step = 0; step < steps; step++) {
      this.#take();
      const runnable = [...this.#queues.values()].filter(
        ({ channel, records }) => records[0] !== undefined && this.#canRun(channel, records[0]),
      );
      const pending = this.channels.flatMap(({ later }) => later.map((bind) => ({ later, bind })));
      if (runnable.length + pending.length === 0) {
        const stuck = [...this.#queues.values()].flatMap(({ records }) => records).map(({ opcode, stream }) => `${opcode} on ${stream}`);
        if (stuck.length > 0) throw new Error(`nothing can run: ${stuck.join(', ')}`);
        return true;
      }
      const chosen = choose(runnable.length + pending.length);
      if (chosen < runnable.length) {
        this.#execute(runnable[chosen]!);
      } else {
        const { later, bind } = pending[chosen - runnable.length]!;
        later.splice(later.indexOf(bind), 1);
        bind();
      }
    }
    return false;
  }

  /** Runs everything, and settles the waits. */
  async settle(choose: (count: number) => number = () => 0): Promise<void> {
    for (let round = 0; round < 4; round++) {
      this.run(choose);
      this.fixtures[0]?.progress.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #take(): void {
    for (const [at, channel] of this.channels.entries()) {
      for (const record of channel.records.slice(this.#taken[at])) {
        const key = keyOf(channel.id, record.stream);
        const queue = this.#queues.get(key) ?? { channel, records: [] };
        this.#queues.set(key, queue);
        queue.records.push(record);
      }
      this.#taken[at] = channel.records.length;
    }
  }

  #channel(id: number): SimulatedChannel {
    const found = this.channels.find((channel) => channel.id === id);
    if (found === undefined) throw new Error(`no device ${id}`);
    return found;
  }

  #canRun(channel: SimulatedChannel, { opcode, view }: Submitted): boolean {
    if (opcode === 'WAIT') {
      const target = keyOf(view.getUint32(WaitRecord.DEVICE, true), view.getUint32(WaitRecord.TARGET, true));
      return (this.#reached.get(target) ?? 0) >= Number(view.getBigUint64(WaitRecord.TICKET, true));
    }
    // Memory of any kind may be bound later than the record that names it is seen, and parks it.
    if (opcode === 'COPY') return [this.#end(view, 'DST'), this.#end(view, 'SRC')].every((bytes) => bytes !== undefined);
    if (opcode === 'COPY_STRIDED')
      return [CopyStridedRecord.DST_HANDLE, CopyStridedRecord.SRC_HANDLE].every((at) => channel.memory.has(view.getUint32(at, true)));
    if (opcode === 'FREE') return channel.memory.has(view.getUint32(FreeRecord.HANDLE, true));
    return true;
  }

  #end(view: DataView, end: 'DST' | 'SRC'): Uint8Array | undefined {
    const owner = this.#channel(view.getUint32(CopyRecord[`${end}_DEVICE`], true));
    const isDevice = view.getUint16(CopyRecord[`${end}_SPACE`], true) === MemorySpace.DEVICE;
    return (isDevice ? owner.memory : owner.host).get(view.getUint32(CopyRecord[`${end}_HANDLE`], true));
  }

  #execute({ channel, records }: Queue): void {
    const record = records.shift()!;
    const { opcode, view, stream, ticket } = record;
    switch (opcode) {
      case 'ALLOC':
        channel.allocate(view.getUint32(AllocRecord.HANDLE, true), long(view, AllocRecord.BYTES), view.getUint32(AllocRecord.KIND, true));
        break;
      case 'FREE':
        channel.free(view.getUint32(FreeRecord.HANDLE, true));
        break;
      case 'FILL':
        this.#fill(channel, view, FillRecord.PATTERN, long(view, FillRecord.OFFSET), [
          [long(view, FillRecord.COUNT), view.getUint32(FillRecord.ELEMENT_BYTES, true)],
        ]);
        break;
      case 'FILL_STRIDED':
        this.#fill(channel, view, FillStridedRecord.PATTERN, long(view, FillStridedRecord.OFFSET), axesOf(view, StridedAxis.DST_STRIDE));
        break;
      case 'COPY':
        this.#copy(channel, view);
        break;
      case 'COPY_STRIDED':
        copyStrided(channel, view);
        break;
      default:
        if (!['WAIT', 'NOP', 'STREAM_CREATE', 'STREAM_DESTROY', 'UPLOAD_GRAPH'].includes(opcode))
          throw new Error(`${opcode} is not simulated`);
    }
    this.#reached.set(keyOf(channel.id, stream), ticket);
    channel.complete(stream, ticket);
  }

  #copy(channel: SimulatedChannel, view: DataView): void {
    const bytes = long(view, CopyRecord.BYTES);
    const from = part(this.#end(view, 'SRC')!, long(view, CopyRecord.SRC_OFFSET), bytes);
    part(this.#end(view, 'DST')!, long(view, CopyRecord.DST_OFFSET), bytes).set(from);
    for (const end of ['DST', 'SRC'] as const) {
      if (view.getUint16(CopyRecord[`${end}_SPACE`], true) !== MemorySpace.DEVICE) continue;
      const owner = this.#channel(view.getUint32(CopyRecord[`${end}_DEVICE`], true));
      if (owner.backend !== channel.backend) throw new Error(`a stream of ${channel.backend} copies memory of ${owner.backend}`);
    }
  }

  #fill(channel: SimulatedChannel, view: DataView, pattern: number, offset: number, axes: readonly Axis[]): void {
    // Both records have the handle and the element's size at the same places.
    const memory = channel.memory.get(view.getUint32(FillRecord.HANDLE, true))!;
    const size = view.getUint32(FillRecord.ELEMENT_BYTES, true);
    const element = new Uint8Array(view.buffer, pattern, size);
    const [only] = axes;
    if (axes.length === 1 && only !== undefined && only[1] === size && only[0] > 0) {
      // Large ones would take long element by element.
      const all = part(memory, offset, only[0] * size);
      all.set(element);
      for (let done = size; done < all.length; done *= 2) all.copyWithin(done, 0, done);
      return;
    }
    for (const at of offsetsOf(axes)) part(memory, offset + at, size).set(element);
  }
}

type Axis = readonly [extent: number, stride: number];

/** The byte offsets of all elements, in their order. */
export function offsetsOf(axes: readonly Axis[]): number[] {
  let offsets = [0];
  for (const [extent, stride] of axes) offsets = offsets.flatMap((offset) => Array.from({ length: extent }, (_, n) => offset + n * stride));
  return offsets;
}

function axesOf(view: DataView, stride: number): Axis[] {
  const rank = view.getUint32(view.getUint16(0, true) === 10 ? CopyStridedRecord.RANK : FillStridedRecord.RANK, true);
  return Array.from({ length: rank }, (_, axis) => {
    const at = CopyStridedRecord.BYTE_SIZE + axis * StridedAxis.BYTE_SIZE;
    const extent = long(view, at + StridedAxis.EXTENT);
    if (extent === 0) throw new Error('an axis of a record is empty');
    return [extent, Number(view.getBigInt64(at + stride, true))] as const;
  });
}

function copyStrided(channel: SimulatedChannel, view: DataView): void {
  const [dst, src] = [CopyStridedRecord.DST_HANDLE, CopyStridedRecord.SRC_HANDLE].map(
    (at) => channel.memory.get(view.getUint32(at, true))!,
  );
  const size = view.getUint32(CopyStridedRecord.ELEMENT_BYTES, true);
  const to = offsetsOf(axesOf(view, StridedAxis.DST_STRIDE));
  const from = offsetsOf(axesOf(view, StridedAxis.SRC_STRIDE));
  const [toStart, fromStart] = [long(view, CopyStridedRecord.DST_OFFSET), long(view, CopyStridedRecord.SRC_OFFSET)];
  for (const [n, at] of to.entries()) part(dst!, toStart + at, size).set(part(src!, fromStart + from[n]!, size));
}

function part(bytes: Uint8Array, offset: number, length: number): Uint8Array {
  if (offset < 0 || offset + length > bytes.length) throw new Error(`bytes ${offset} to ${offset + length} of ${bytes.length}`);
  return bytes.subarray(offset, offset + length);
}

const long = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));
const keyOf = (channel: number, stream: number): string => `${channel}:${stream}`;
