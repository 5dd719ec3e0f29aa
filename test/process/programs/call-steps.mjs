// For step_counter (bench/native/step_counter.cpp), which counts instructions between marks on this thread: nothing, then each of the
// operations that scripts/gate.mjs names, in regions of CALLS, round by round.
//   step_counter node --single-threaded call-steps.mjs <rounds>
import { readSync, writeSync } from 'node:fs';
import { cudaKernel, f32, inout, input, openDevice } from 'millrace';
import { add } from 'millrace/ops';

/** Single steps are slow: few calls, each of which is the same. */
const CALLS = 5;
/** Enough that V8 has compiled what a call needs for good: it does so again when a counter outgrows a small integer, for example. */
const WARM = 4000;
const PASSES = 6;
const ONE = { grid: 1, block: 1 };

const saxpy = cudaKernel(
  'saxpy_one',
  { a: f32, x: input(f32), y: inout(f32) },
  'extern "C" __global__ void saxpy_one(float a, const float* x, float* y) { y[0] = a * x[0] + y[0]; }',
);
const device = await openDevice('cpu');
await device.compile(saxpy);
const tracked = device.createStream({ ordering: 'tracked' });
const explicit = device.createStream({ ordering: 'explicit' });
// No array is used on two streams, which would order them.
const ofTracked = { a: 2, x: tracked.ones(1), y: tracked.zeros(1) };
const ofExplicit = { a: 2, x: explicit.ones(1), y: explicit.zeros(1) };
const summand = device.ones(1000);
const pinned = device.pinned(1);
const ordinary = new Float32Array(1);
const repeat = (call) => () => {
  for (let n = 0; n < CALLS; n++) call();
};
const kinds = [
  () => undefined,
  repeat(() => tracked.launch(saxpy, ONE, ofTracked)),
  repeat(() => explicit.launch(saxpy, ONE, ofExplicit)),
  repeat(() => tracked.copy(ofTracked.y, pinned)),
  repeat(() => explicit.copy(ofExplicit.y, ordinary)),
  repeat(() => add(summand, summand)[Symbol.dispose]()),
];

/** The same function warms up and is counted: V8 compiles each caller by itself. */
function region(submit, begin, end) {
  process.umask(begin);
  submit();
  process.umask(end);
}

const mask = process.umask();
// What the device does cannot disturb the calls of streams that do not run.
function hold() {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  for (const stream of [tracked, explicit, device.defaultStream]) stream.hold(() => released, { timeoutMs: 120_000 });
  for (let n = 0; n < WARM; n++) for (const submit of kinds) region(submit, mask, mask);
  return release;
}
for (let pass = 0; pass < PASSES; pass++) {
  hold()();
  await device.synchronize();
}
const release = hold();
writeSync(1, `${process.pid}\n`);
readSync(0, Buffer.alloc(1));
for (let round = 0; round < Number(process.argv[2]); round++) for (const submit of kinds) region(submit, 0o635, 0o636);
process.umask(mask);
release();
await device.close();
