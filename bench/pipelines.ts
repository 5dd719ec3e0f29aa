// What a pipeline costs per item: `overlap` with operators, whose results are arrays of their own, beside the ways that share
// memory: a stage that copies through pinned arrays of its lane, and a hand-written loop over three streams with arrays that
// are used again. All do the same work, alternating in one run; ratios are against the hand-written loop.
//
//   node build/js/bench/pipelines.js [--device cuda:0] [--items 500] [--rounds 5] [--json FILE]
import { parseArgs } from 'node:util';
import { download, inout, i32, kernel, launch, openDevice, overlap, upload, type Device, type DeviceSpec } from 'millrace';
import { lastValueFrom, of, scan } from 'rxjs';
import { printTable, summarize, writeReport, type Row } from './suite/details.js';

const { values } = parseArgs({
  options: {
    device: { type: 'string', multiple: true, default: ['auto'] },
    items: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'string', default: 'build/reports/pipelines.json' },
  },
});
const [items, rounds] = [Number(values.items), Number(values.rounds)];
const LANES = 3;
const LENGTHS = [1000, 250_000, 4_000_000];

const increment = kernel('increment', { x: inout(i32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});

/** Passes `count` items through and returns the sum of each result's first element. */
type Way = (device: Device, chunk: Int32Array, count: number) => Promise<number>;

function* repeated(chunk: Int32Array, count: number): Generator<Int32Array> {
  for (let n = 0; n < count; n++) yield chunk;
}

const WAYS: Readonly<Record<string, Way>> = {
  'by hand: streams, arrays used again': async (device, chunk, count) => {
    const lanes = Array.from({ length: LANES }, () => ({
      stream: device.createStream(),
      x: device.empty(chunk.length, i32),
      input: device.pinned(chunk.length, i32),
      output: device.pinned(chunk.length, i32),
      last: Promise.resolve() as Promise<unknown>,
    }));
    let sum = 0;
    let isFull = 0;
    const take = async (lane: (typeof lanes)[number]): Promise<void> => {
      await lane.last;
      if (isFull++ >= LANES) sum += lane.output.data[0]!;
    };
    for (let n = 0; n < count; n++) {
      const lane = lanes[n % LANES]!;
      await take(lane);
      lane.input.data.set(chunk);
      lane.stream.copy(lane.x, lane.input);
      lane.stream.launch(increment, chunk.length, { x: lane.x });
      lane.last = lane.stream.copy(lane.output, lane.x).done;
    }
    for (let n = 0; n < LANES; n++) await take(lanes[(count + n) % LANES]!);
    for (const { stream, x, input, output } of lanes) {
      for (const array of [x, input, output]) array[Symbol.dispose]();
      await stream.close();
    }
    return sum;
  },
  'overlap, operators': async (device, chunk, count) => {
    const run = overlap(device, repeated(chunk, count), { depth: LANES }, (item, lane) =>
      of(item).pipe(
        upload(lane),
        launch(lane, increment, chunk.length, (x) => ({ x })),
        download(lane),
      ),
    );
    return lastValueFrom(run.pipe(scan((sum, result) => sum + result[0]!, 0)));
  },
  'overlap, pinned memory of the lane': async (device, chunk, count) => {
    const run = overlap(device, repeated(chunk, count), { depth: LANES }, async (item, lane) => {
      const [input, output, x] = [lane.pinned(item.length, i32), lane.pinned(item.length, i32), lane.empty(item.length, i32)];
      input.data.set(item);
      lane.stream.copy(x, input);
      lane.stream.launch(increment, item.length, { x });
      await lane.stream.copy(output, x).done;
      return output.data[0]!;
    });
    let sum = 0;
    for await (const value of run) sum += value;
    return sum;
  },
};

async function measure(spec: DeviceSpec, rows: Row[]): Promise<void> {
  await using device = await openDevice(spec);
  await device.compile(increment);
  for (const length of LENGTHS) {
    const count = Math.max(30, Math.round(items / Math.max(1, length / 20_000)));
    const chunk = new Int32Array(length);
    const micros = new Map<string, number[]>(Object.keys(WAYS).map((name) => [name, []]));
    for (let round = 0; round <= rounds; round++) {
      for (const [name, way] of Object.entries(WAYS)) {
        const start = performance.now();
        const sum = await way(device, chunk, count);
        if (sum !== count) throw new Error(`${name} gave ${sum} instead of ${count}.`);
        // The first round warms up.
        if (round > 0) micros.get(name)!.push(((performance.now() - start) * 1e3) / count);
      }
    }
    const [byHand = 0] = [...micros.values()].map((list) => summarize(list).p50);
    for (const [what, list] of micros) {
      const { p50, p99 } = summarize(list);
      rows.push({ device: device.info.name, what: `${what}, ${length} elements`, unit: 'us an item', p50, p99, raw: byHand });
    }
  }
}

const rows: Row[] = [];
for (const spec of values.device) await measure(spec as DeviceSpec, rows);
printTable(rows);
writeReport(values.json, rows);
