// The file: trips with the zone where each began, its distance and its fare. Generated, so that every run has the same ones.
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import {
  Field,
  Float32,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchReader,
  Schema,
  Struct,
  Uint32,
  Uint8,
} from 'apache-arrow';
import { Refusal } from '../command-line.js';

/** Zones of the city: the values of a u8. */
export const ZONES = 256;
/** Rows of a record batch: a few MiB. */
export const BATCH_ROWS = 2 ** 19;

const FIELDS = { zone: new Uint8(), km: new Float32(), cents: new Uint32() } as const;
export type TripTypes = typeof FIELDS;
const schema = new Schema<TripTypes>((Object.keys(FIELDS) as (keyof TripTypes)[]).map((name) => new Field(name, FIELDS[name], false)));

/** The columns of one record batch. */
export interface Trips {
  readonly zone: Uint8Array;
  readonly km: Float32Array;
  readonly cents: Uint32Array;
}

function* batches(rows: number): Generator<RecordBatch<TripTypes>> {
  let state = 1;
  const next = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  for (let first = 0; first < rows; first += BATCH_ROWS) {
    const length = Math.min(BATCH_ROWS, rows - first);
    const [zone, km, cents] = [new Uint8Array(length), new Float32Array(length), new Uint32Array(length)];
    for (let at = 0; at < length; at++) {
      // Few zones have most of the trips.
      zone[at] = ZONES * next() ** 2;
      km[at] = -5 * Math.log(1 - next());
      cents[at] = 300 + 180 * km[at]! + 200 * next();
    }
    const children = [
      makeData({ type: FIELDS.zone, data: zone }),
      makeData({ type: FIELDS.km, data: km }),
      makeData({ type: FIELDS.cents, data: cents }),
    ];
    yield new RecordBatch(schema, makeData({ type: new Struct<TripTypes>(schema.fields), length, children: children as never }));
  }
}

/** Writes a file of so many trips: 9 bytes each. */
export async function writeTrips(file: string, rows: number): Promise<void> {
  const writer = RecordBatchFileWriter.writeAll(batches(rows));
  await pipeline(writer.toNodeStream(), createWriteStream(file));
}

/** The record batches of a file, one after the other. Each has memory of its own. */
export async function* readTrips(file: string): AsyncGenerator<Trips> {
  const handle = await open(file).catch((error: Error) => {
    throw new Refusal(`The file cannot be read: ${error.message} (--rows makes it)`);
  });
  try {
    const reader = await RecordBatchReader.from<TripTypes>(handle);
    await reader.open();
    for (const [name, type] of Object.entries(FIELDS)) {
      const found = reader.schema.fields.find((field) => field.name === name)?.type;
      if (String(found) !== String(type)) throw new Refusal(`Column ${name} of ${file} is of type ${String(found)}, not ${String(type)}.`);
    }
    for await (const batch of reader) {
      const [zone, km, cents] = (['zone', 'km', 'cents'] as const).map((name) => {
        const column = batch.getChild(name)!;
        if (column.nullCount > 0) throw new Refusal(`Column ${name} of ${file} has nulls.`);
        // Behind the last row are bytes that fill a word.
        return column.data[0]!.values.subarray(0, batch.numRows);
      });
      yield { zone, km, cents } as Trips;
    }
  } finally {
    await handle.close();
  }
}
