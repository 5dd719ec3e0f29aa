// How long turns of the event loop last while the library works: for each case the 99th percentile and the longest turn, in
// milliseconds of wall time, and the longest in milliseconds of the loop's own CPU time, which other processes do not change.
//   node loop-turns.mjs [device] [part of a case's name]...
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { f32, i32, input, inout, kernel, output, openDevice, synchronize } from 'millrace';

const [spec = 'cpu', ...wanted] = process.argv.slice(2);
const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;
const schedstat = existsSync(SCHEDSTAT) ? openSync(SCHEDSTAT) : undefined;
const text = Buffer.alloc(128);
/** CPU time of the loop's thread. */
const cpuMs = () =>
  schedstat === undefined ? performance.now() : Number.parseInt(text.toString('latin1', 0, readSync(schedstat, text, 0, 128, 0))) / 1e6;

const device = await openDevice(spec);
const step = kernel('step', { y: inout(f32) }, ({ y }, { i }) => {
  y[i] = y[i] + 1;
});
const gather = kernel('gather', { at: i32, x: input(f32), y: output(f32) }, ({ at, x, y }, { i }) => {
  y[i] = x[i + at];
});
await device.compile(step, gather);
const y = device.zeros(64);
const other = device.zeros(64);

/** Calls `work` while immediates follow each other, so that the time between two of them is one turn. */
async function turns(work) {
  const [walls, cpus] = [[], []];
  let isOver = false;
  let [wall, cpu] = [performance.now(), cpuMs()];
  const over = new Promise((resolve) => {
    const beat = () => {
      const [nextWall, nextCpu] = [performance.now(), cpuMs()];
      walls.push(nextWall - wall);
      cpus.push(nextCpu - cpu);
      [wall, cpu] = [nextWall, nextCpu];
      if (isOver) resolve();
      else setImmediate(beat);
    };
    setImmediate(beat);
  });
  try {
    await work();
  } finally {
    isOver = true;
  }
  await over;
  return { walls: walls.toSorted((a, b) => a - b), cpus: cpus.toSorted((a, b) => a - b) };
}

const many = async (count, call) => {
  for (let n = 0; n < count; n++) await call(n);
};
/** The calls themselves in slices of a turn each, then everything at once. */
const sliced = async (count, call) => {
  for (let n = 0; n < count; n++) {
    call(n);
    if (n % 200 === 199) await new Promise(setImmediate);
  }
};

const cases = {
  'await stream.ready() before each of 100,000 launches': () =>
    many(100_000, async () => {
      await device.stream.ready();
      device.stream.launch(step, 64, { y });
    }),
  'await device.stream.synchronize() 50,000 times, nothing pending': () => many(50_000, () => device.stream.synchronize()),
  'await device.synchronize() 50,000 times, nothing pending': () => many(50_000, () => device.synchronize()),
  'await synchronize() 50,000 times, nothing pending': () => many(50_000, () => synchronize()),
  'await done of a finished operation 50,000 times': async () => {
    const operation = device.stream.launch(step, 64, { y });
    await operation.done;
    await many(50_000, () => operation.synchronize({ timeoutMs: 1000 }));
  },
  'await event.done 50,000 times, recorded and reached': async () => {
    const event = device.createEvent();
    device.stream.record(event);
    await event.done;
    await many(50_000, () => event.done);
  },
  'await read of 64 elements 5,000 times': () => many(5000, () => y.read()),
  '20,000 promises of one stream at once': async () => {
    const all = [];
    await sliced(20_000, () => all.push(device.stream.launch(step, 64, { y }).done));
    await Promise.all(all);
  },
  '20,000 failures that no code awaits': async () => {
    const stop = device.errors$.subscribe(() => undefined);
    await sliced(20_000, () => device.stream.launch(gather, 64, { at: 5000, x: y, y: other }));
    await device.synchronize();
    await new Promise((resolve) => setTimeout(resolve, 20));
    stop.unsubscribe();
  },
  '20,000 device.synchronize() at once': async () => {
    device.stream.launch(step, 64, { y });
    const all = [];
    await sliced(20_000, () => all.push(device.synchronize()));
    await Promise.all(all);
  },
  'operations$ of 20,000 launches': async () => {
    const seen = [];
    const stop = device.stream.operations$.subscribe(({ id }) => seen.push(id));
    await sliced(20_000, () => device.stream.launch(step, 64, { y }));
    await device.synchronize();
    while (seen.length < 20_000) await new Promise(setImmediate);
    stop.unsubscribe();
  },
};

const rows = [];
for (const [name, work] of Object.entries(cases)) {
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
  const { walls, cpus } = await turns(work);
  const at = (list, part) => list[Math.min(list.length - 1, Math.floor(list.length * part))];
  rows.push({ name, turns: walls.length, p99: at(walls, 0.99), worst: walls.at(-1), worstCpu: cpus.at(-1) });
  const row = rows.at(-1);
  console.log(
    `${row.p99.toFixed(2).padStart(8)} ${row.worst.toFixed(2).padStart(8)} ${row.worstCpu.toFixed(2).padStart(8)}  ${name} (${row.turns} turns)`,
  );
}
await device.close();
if (schedstat !== undefined) closeSync(schedstat);
