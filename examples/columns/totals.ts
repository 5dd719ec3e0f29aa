// Of the trips that are long enough, how many began in each zone, and what they cost: on the device, and in plain JavaScript.
import { type Float64, makeVector, Table, type Uint16, type Uint32, vectorFromArray } from 'apache-arrow';
import { type Device, f32, i32, inout, input, kernel, overlap, u32, u64, u8 } from 'millrace';
import { type Trips, ZONES } from './trips.js';

/** Cents are whole numbers, so every order of the additions gives the same sums. */
export interface Totals {
  readonly trips: Uint32Array;
  readonly cents: BigUint64Array;
}

export type Engine = (batches: AsyncIterable<Trips>, leastKm: number) => Promise<Totals>;

/** Rows of a thread, and threads of a block. A block adds up in its own memory first. */
const ROWS = 64;
const THREADS = 128;
/** Record batches on their way at a time: one is read while others are added up. */
const DEPTH = 3;

/** The filter and the groups in one pass over the columns. */
export const group = kernel(
  'group',
  { zone: input(u8), km: input(f32), cents: input(u32), rows: i32, leastKm: f32, trips: inout(u32), sums: inout(u64) },
  (
    { zone, km, cents, rows, leastKm, trips, sums },
    { blockIdx, threadIdx, shared, syncthreads, atomicAdd, u32: toU32, u64: toU64, zones, perThread, threads },
  ) => {
    const ownTrips = shared(u32, zones);
    const ownSums = shared(u64, zones);
    for (let at = threadIdx.x; at < zones; at += threads) {
      ownTrips[at] = toU32(0);
      ownSums[at] = toU64(0);
    }
    syncthreads();
    const first = blockIdx.x * threads * perThread + threadIdx.x;
    for (let n = 0; n < perThread; n++) {
      const at = first + n * threads;
      if (at < rows && km[at]! >= leastKm) {
        atomicAdd(ownTrips, zone[at]!, toU32(1));
        atomicAdd(ownSums, zone[at]!, toU64(cents[at]!));
      }
    }
    syncthreads();
    for (let at = threadIdx.x; at < zones; at += threads) {
      const count = ownTrips[at]!;
      if (count === toU32(0)) continue;
      atomicAdd(trips, at, count);
      atomicAdd(sums, at, ownSums[at]!);
    }
  },
  { constants: { zones: ZONES, perThread: ROWS, threads: THREADS } },
);

function add(into: Totals, trips: Uint32Array, cents: BigUint64Array): void {
  for (let zone = 0; zone < ZONES; zone++) {
    into.trips[zone]! += trips[zone]!;
    into.cents[zone]! += cents[zone]!;
  }
}

const none = (): Totals => ({ trips: new Uint32Array(ZONES), cents: new BigUint64Array(ZONES) });

/** Batches lie in pinned memory, where the kernel reads each byte once, several at a time. */
export function onDevice(device: Device): Engine {
  return async (batches, leastKm) => {
    const totals = none();
    const parts = overlap(device, batches, { depth: DEPTH }, async (batch, lane) => {
      const rows = batch.zone.length;
      const [zone, km, cents] = [lane.pinned(rows, 'u8'), lane.pinned(rows, 'f32'), lane.pinned(rows, 'u32')];
      zone.data.set(batch.zone);
      km.data.set(batch.km);
      cents.data.set(batch.cents);
      const [trips, sums] = [lane.zeros(ZONES, 'u32'), lane.zeros(ZONES, 'u64')];
      const grid = Math.ceil(rows / (ROWS * THREADS));
      if (rows > 0) lane.stream.launch(group, { grid, block: THREADS }, { zone, km, cents, rows, leastKm, trips, sums });
      return { trips: await trips.read(), cents: await sums.read() };
    });
    for await (const part of parts) add(totals, part.trips, part.cents);
    return totals;
  };
}

/** The same on the thread that reads. A sum of cents of one batch is below 2^53. */
export const inPlainJavaScript: Engine = async (batches, least) => {
  const totals = none();
  const leastKm = Math.fround(least);
  for await (const { zone, km, cents } of batches) {
    const trips = new Uint32Array(ZONES);
    const sums = new Float64Array(ZONES);
    for (let at = 0; at < zone.length; at++) {
      if (!(km[at]! >= leastKm)) continue;
      trips[zone[at]!]!++;
      sums[zone[at]!]! += cents[at]!;
    }
    add(totals, trips, BigUint64Array.from(sums, BigInt));
  }
  return totals;
};

/** The zones that have trips, as an Arrow table. */
export function tableOf({ trips, cents }: Totals): Table<{ zone: Uint16; trips: Uint32; euros: Float64 }> {
  const zones = Uint16Array.from(trips.keys()).filter((zone) => trips[zone]! > 0);
  return new Table({
    zone: makeVector(zones),
    trips: makeVector(Uint32Array.from(zones, (zone) => trips[zone]!)),
    euros: vectorFromArray(Float64Array.from(zones, (zone) => Number(cents[zone]!) / 100)),
  });
}

export function areEqual(one: Totals, other: Totals): boolean {
  return one.trips.every((value, zone) => value === other.trips[zone]) && one.cents.every((value, zone) => value === other.cents[zone]);
}
