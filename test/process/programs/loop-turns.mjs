// How long turns of the event loop last while the library works: for each case the 99th percentile and the longest turn, and the same
// together with the garbage collections in them, in milliseconds. Then single calls that cannot yield. Turns in which the case itself makes
// many calls do not count, nor do turns that do next to nothing. Each case runs several times; the best run counts, because compilation of
// JavaScript and other processes disturb some of them.
//   node loop-turns.mjs [device] [part of a case's name]...
// With MILLRACE_MOST_MS, a case runs until a run has a 99th percentile below it and no turn of ten times as much, at most RUNS times, and only the cases without such a run
// are printed, and the calls that take longer than MILLRACE_MOST_CALL_MS: test/process/loop-turns.test.ts.
import { PerformanceObserver } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { WASI } from 'node:wasi';
import * as millrace from 'millrace';
import * as rxjs from 'rxjs';
import { callTimes } from './loop-turns-calls.mjs';
import { pipelineCases } from './loop-turns-pipelines.mjs';

const { elapsed, f32, i32, inout, input, kernel, listDevices, openDevice, operationsOf, output, synchronize } = millrace;

const MOST_MS = Number(process.env['MILLRACE_MOST_MS'] ?? 0);
const MOST_CALL_MS = Number(process.env['MILLRACE_MOST_CALL_MS'] ?? 0);
const RUNS = MOST_MS > 0 ? 12 : 5;
/** What a turn without work takes. */
const IDLE_MS = 0.02;
const [spec = 'cpu', ...wanted] = process.argv.slice(2);
const SECOND = spec.startsWith('cpu') ? 'cpu:1' : 'cuda:1';
/** CPU time of the loop's thread: less than the wall time where other processes had the core. WASI's clock is exact to a microsecond. */
const wasi = new WASI({ version: 'preview1' });
const memory = new WebAssembly.Memory({ initial: 1 });
wasi.initialize({ exports: { memory } });
const threadNs = new BigUint64Array(memory.buffer, 0, 1);
const THREAD_CPUTIME = 3;
const cpuMs = () => {
  wasi.wasiImport.clock_time_get(THREAD_CPUTIME, 0n, threadNs.byteOffset);
  return Number(threadNs[0]) / 1e6;
};

const collections = [];
new PerformanceObserver((list) => collections.push(...list.getEntries())).observe({ entryTypes: ['gc'] });

// The second device is for what ends devices.
process.env['MILLRACE_CPU_DEVICES'] ??= '2';
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const device = await openDevice(spec);
device.errors$.subscribe(() => undefined);
const step = kernel('step', { y: inout(f32) }, ({ y }, { i }) => {
  y[i] = y[i] + 1;
});
const gather = kernel('gather', { at: i32, x: input(f32), y: output(f32) }, ({ at, x, y }, { i }) => {
  y[i] = x[i + at];
});
await device.compile(step, gather);
const y = device.zeros(64);
const other = device.zeros(64);
const large = device.zeros(2 << 20);

/** This turn makes calls of the case itself. */
let isOfCase = false;

/** Calls `work` while immediates follow each other, so that the time between two of them is one turn. Returns the sorted times of the turns. */
async function turns(work) {
  const all = [];
  let isOver = false;
  let [from, cpu] = [performance.now(), cpuMs()];
  isOfCase = false;
  const over = new Promise((resolve) => {
    const beat = () => {
      const [to, cpuNow] = [performance.now(), cpuMs()];
      // While compilers work, there are millions of turns without work.
      const whole = Math.min(cpuNow - cpu, to - from);
      if (!isOfCase && whole > IDLE_MS) all.push({ from, to, whole });
      isOfCase = false;
      [from, cpu] = [performance.now(), cpuMs()];
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
  // The observer learns of collections later.
  await new Promise((resolve) => setTimeout(resolve, 5));
  const inTurns = collections.splice(0).map(({ startTime, duration }) => ({ begin: startTime, end: startTime + duration }));
  const times = all.map(({ from: since, to, whole: used }) => {
    const parts = inTurns.map(({ begin, end }) => Math.max(0, Math.min(to, end) - Math.max(since, begin)));
    return { whole: used, own: Math.max(0, used - parts.reduce((sum, part) => sum + part, 0)) };
  });
  const sorted = (of) => times.map(of).toSorted((one, two) => one - two);
  return { own: sorted(({ own }) => own), whole: sorted(({ whole }) => whole) };
}

const nextTurn = () => new Promise(setImmediate);
const many = async (count, call) => {
  for (let n = 0; n < count; n++) await call(n);
};
/** The calls of the case in turns of their own, which do not count. */
const sliced = async (count, call) => {
  for (let n = 0; n < count; n++) {
    isOfCase = true;
    call(n);
    if (n % 200 === 199) await nextTurn();
  }
  await nextTurn();
};
/** Waits for the promises without one turn that takes them all up. */
const settled = (count) => {
  let left = count;
  let resolve;
  const all = new Promise((done) => (resolve = done));
  const note = () => void (--left === 0 && resolve());
  return { all, note, take: (promise) => void promise.then(note, note) };
};
const ofStream = (count, submit) => async () => {
  const { all, take } = settled(count);
  await sliced(count, (n) => take(submit(n)));
  await all;
};
const graphOf = (count, stream = device.stream) =>
  stream.capture((s) => {
    for (let n = 0; n < count; n++) s.launch(step, 64, { y });
  });
/** The collection and what it ends. */
const forget = async (count, make) => {
  await sliced(count, make);
  await device.synchronize();
  collectGarbage();
  for (let n = 0; n < 100; n++) await nextTurn();
};
const finished = device.stream.launch(step, 64, { y });
await finished.done;
const reached = device.stream.record();
await reached.done;
const numbers = Array.from({ length: 1_000_000 }, (_, n) => n);
const floats = new Float32Array(2 << 20);

const cases = {
  // Waits that are over at the call.
  'await stream.ready() before each of 40,000 launches': () =>
    many(40_000, async () => {
      await device.stream.ready();
      device.stream.launch(step, 64, { y });
    }),
  'await stream.synchronize() 50,000 times, nothing pending': () => many(50_000, () => device.stream.synchronize()),
  'await device.synchronize() 50,000 times, nothing pending': () => many(50_000, () => device.synchronize()),
  'await synchronize() 50,000 times, nothing pending': () => many(50_000, () => synchronize()),
  'await operation.synchronize() 50,000 times, finished': () => many(50_000, () => finished.synchronize({ timeoutMs: 1000 })),
  'await event.synchronize() 50,000 times, reached': () => many(50_000, () => reached.synchronize({ timeoutMs: 1000 })),
  'await stream.record().done 20,000 times': () => many(20_000, () => device.stream.record().done),
  'await array.read() of 64 elements 500 times': () => many(500, () => y.read()),
  'await array.item() 500 times': () => many(500, () => y.item(0)),
  'await stream.host() 500 times': () => many(500, () => device.stream.host(() => undefined).done),
  'await stream.external() 200 times': () => many(200, () => device.stream.external({ reads: { y } }, () => undefined).done),
  'stream.external() 2,000 times': ofStream(2000, () => device.stream.external({}, () => undefined).done),
  'await stream.hold() 200 times': () => many(200, () => device.stream.hold(() => undefined, { timeoutMs: 60_000 }).done),
  'await createStream().close() 200 times': () => many(200, () => device.createStream().close()),
  // Much that ends at once.
  '20,000 promises of one stream': ofStream(20_000, () => device.stream.launch(step, 64, { y }).done),
  '20,000 promises of four streams': async () => {
    const streams = Array.from({ length: 4 }, () => device.createStream());
    await ofStream(20_000, (n) => streams[n % 4].fill(other, n).done)();
    for (const stream of streams) await stream.close();
  },
  '10,000 failures that code awaits': ofStream(10_000, () => device.stream.launch(gather, 64, { at: 5000, x: y, y: other }).done),
  '20,000 failures that no code awaits': async () => {
    await sliced(20_000, () => device.stream.launch(gather, 64, { at: 5000, x: y, y: other }));
    await device.synchronize();
  },
  '10,000 device.synchronize() at once': async () => {
    device.stream.launch(step, 64, { y });
    await ofStream(10_000, () => device.synchronize())();
  },
  '5,000 reads at once': ofStream(5000, () => y.read()),
  '2,000 host functions at once': ofStream(2000, () => device.stream.host(() => undefined).done),
  'operations$ of 10,000 launches': async () => {
    const { all, note } = settled(10_000);
    const stop = device.stream.operations$.subscribe(note);
    await sliced(10_000, () => device.stream.launch(step, 64, { y }));
    await all;
    stop.unsubscribe();
  },
  'activity$ of 10,000 launches': async () => {
    const { all, note } = settled(10_000);
    const stop = device.activity$.subscribe(({ phase }) => void (phase === 'finished' && note()));
    await sliced(10_000, () => device.stream.launch(step, 64, { y }));
    await all;
    stop.unsubscribe();
  },
  'operationsOf(stream) of 5,000 launches': async () => {
    const stream = device.createStream();
    const all = (async () => {
      let seen = 0;
      for await (const _ of operationsOf(stream, { every: 10_000 })) if (++seen === 5000) break;
    })();
    await sliced(5000, () => stream.launch(step, 64, { y }));
    await all;
    await stream.close();
  },
  'destroy() of a device with 20,000 pending promises and 5,000 failures': async () => {
    const own = await openDevice(SECOND).catch(() => undefined);
    if (own === undefined) return;
    own.errors$.subscribe(() => undefined);
    const z = own.zeros(64);
    await own.compile(step, gather);
    const { all, take } = settled(20_000);
    await sliced(5000, () => own.stream.launch(gather, 64, { at: 5000, x: z, y: z }));
    const held = own.stream.hold(() => new Promise(() => undefined), { timeoutMs: 60_000 });
    held.done.catch(() => undefined);
    await sliced(20_000, () => take(own.stream.launch(step, 64, { y: z }).done));
    isOfCase = true;
    await own.destroy();
    await all;
  },
  'close() of a device with 5,000 pending operations and 5,000 failures': async () => {
    const own = await openDevice(SECOND).catch(() => undefined);
    if (own === undefined) return;
    own.errors$.subscribe(() => undefined);
    const z = own.zeros(64);
    await own.compile(step, gather);
    await sliced(5000, () => own.stream.launch(gather, 64, { at: 5000, x: z, y: z }));
    await sliced(5000, () => own.stream.launch(step, 64, { y: z }));
    await own.close();
  },
  'listDevices() and openDevice() 5 times': () =>
    many(5, async () => {
      await listDevices();
      await (await openDevice(SECOND).catch(() => openDevice(spec))).close();
    }),
  'arrays, events and streams made and given up 2,000 times': () =>
    many(2000, async () => {
      const [z, event] = [device.zeros(64), device.createEvent({ timing: true })];
      const copy = z.clone();
      device.stream.record(event);
      for (const each of [z, copy, event]) each[Symbol.dispose]();
      await device.stream.ready();
    }),
  '10,000 arrays forgotten': () => forget(10_000, () => device.zeros(64)),
  '5,000 pinned arrays forgotten': () => forget(5000, () => device.pinned(64)),
  '5,000 events forgotten': () => forget(5000, () => device.stream.record(device.createEvent({ timing: true }))),
  '2,000 graphs forgotten': () => forget(2000, () => graphOf(1)),
  '500 textures forgotten': () => forget(500, () => device.createTexture({ shape: [8, 8], dtype: 'f32' })),
  'elapsed(first, last) 200 times': () =>
    many(200, async () => {
      const [first, last] = [device.createEvent({ timing: true }), device.createEvent({ timing: true })];
      device.stream.record(first);
      device.stream.record(last);
      await elapsed(first, last);
      for (const event of [first, last]) event[Symbol.dispose]();
    }),
  'pinned memory made, copied from and given up 200 times': () =>
    many(200, async () => {
      const pinned = device.pinned(64);
      await device.stream.copy(y, pinned).done;
      pinned[Symbol.dispose]();
    }),
  'texture made, written, read and given up 50 times': () =>
    many(50, async () => {
      const texture = device.createTexture({ shape: [8, 8], dtype: 'f32' });
      await device.stream.copy(texture, y.reshape([8, 8])).done;
      await texture.read();
      texture[Symbol.dispose]();
    }),
  'compile() of 5 kernels': async () => {
    isOfCase = true;
    const kernels = Array.from({ length: 5 }, (_, n) =>
      kernel(`compiled${n}`, { y: inout(f32) }, ({ y: z }, { i }) => {
        z[i] = z[i] * 2 + i;
      }),
    );
    await nextTurn();
    await device.compile(...kernels);
  },
  // Many bytes.
  'from(1,000,000 numbers)': async () => {
    // One synchronous call.
    isOfCase = true;
    const z = device.from(numbers);
    await nextTurn();
    await z.read();
  },
  'from(8 MiB)': async () => device.from(floats).item(0),
  'copy of 8 MiB to and from ordinary memory': async () => {
    await device.stream.copy(large, floats).done;
    await device.stream.copy(floats, large).done;
  },
  'read() of 8 MiB': () => large.read(),
  'toReadable() of 8 MiB': async () => {
    for await (const _ of large.toReadable());
  },
  // Graphs.
  'capture, upload, launch and close of 1,000 nodes': async () => {
    isOfCase = true;
    const graph = graphOf(1000);
    await nextTurn();
    await graph.upload().done;
    await graph.launch().done;
    await graph.close();
  },
  'capture, launch and close of 100 graphs, and a record, beside 4,000 graphs of the array': async () => {
    const z = device.zeros(64);
    const one = () => device.stream.capture((s) => void s.launch(step, 64, { y: z }));
    const others = [];
    await sliced(4000, () => others.push(one()));
    await many(100, async (n) => {
      const graph = one();
      await nextTurn();
      device.stream.launch(graph);
      device.stream.launch(others[n * 40]);
      device.stream.launch(step, 64, { y: z });
      await nextTurn();
      void graph.close();
      await nextTurn();
    });
    await sliced(4000, (n) => void others[n].close());
    z[Symbol.dispose]();
    await device.synchronize();
  },
  'update, launch and nodeTimes of 200 nodes, 5 times': async () => {
    isOfCase = true;
    const body = (s) => {
      for (let n = 0; n < 200; n++) s.fill(y, n);
    };
    const graph = device.stream.capture(body, { timing: true });
    await nextTurn();
    for (let n = 0; n < 5; n++) {
      isOfCase = true;
      graph.update(body);
      await nextTurn();
      device.stream.launch(graph);
      await graph.nodeTimes();
    }
    await graph.close();
  },
  'toSvg() of 200 nodes': async () => {
    isOfCase = true;
    const graph = graphOf(200);
    await nextTurn();
    await graph.toSvg();
    await graph.close();
  },
  ...pipelineCases(millrace, rxjs, { device, step, gather, numbers, nextTurn, settled, sliced }),
};

const isWanted = (name) => wanted.length === 0 || wanted.some((part) => name.includes(part));
const isShort = ({ p99, times: [, longest] }) => p99 < MOST_MS && longest < 10 * MOST_MS;
const at = (list, part) => list[Math.min(list.length - 1, Math.floor(list.length * part))] ?? 0;
for (const [name, work] of Object.entries(cases)) {
  if (!isWanted(name)) continue;
  let best;
  for (let run = 0; run < RUNS; run++) {
    const { own, whole } = await turns(work);
    const row = { count: own.length, p99: at(own, 0.99), times: [at(own, 0.99), at(own, 1), at(whole, 0.99), at(whole, 1)] };
    if (best === undefined || row.p99 < best.p99) best = row;
    if (isShort(best)) break;
  }
  if (isShort(best)) continue;
  console.log(`${best.times.map((ms) => ms.toFixed(2).padStart(8)).join(' ')}  ${name} (${best.count} turns)`);
}
await callTimes(millrace, { device, step, y, numbers, cpuMs, mostMs: MOST_CALL_MS, isWanted });
await device.close();
