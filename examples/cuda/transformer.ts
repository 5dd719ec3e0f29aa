// A block of a transformer, with the kernels of transformer.cu. It processes sequences of different lengths: one is uploaded and one is
// downloaded while the kernels of a third one run.
import assert from 'node:assert/strict';
import { cudaModule, download, f32, i32, inout, input, openDevice, output, overlap, struct, upload } from 'millrace';
import type { DeviceArray, DeviceSpec, Lane } from 'millrace';
import { lastValueFrom, of, tap, toArray } from 'rxjs';
import { HEAD, referenceBlock, type Weights } from './transformer-reference.js';

const WIDTH = 64;
const HIDDEN = 256;
const LENGTHS = [48, 33, 64, 17, 50, 40];
const [WARP, TILE] = [32, 16]; // as in transformer.cu

const Sizes = struct({ tokens: i32, width: i32, hidden: i32 });
const module = cudaModule(new URL('./transformer.cu', import.meta.url));
const layerNorm = module.kernel('layer_norm', { x: input(f32), gain: input(f32), y: output(f32), sizes: Sizes });
const projectQkv = module.kernel('project_qkv', { x: input(f32), weight: input(f32), qkv: output(f32), sizes: Sizes });
const attention = module.kernel('causal_attention', { qkv: input(f32), attended: output(f32), sizes: Sizes });
const projectOut = module.kernel('project_out', { attended: input(f32), weight: input(f32), x: inout(f32), sizes: Sizes });
const mlpUp = module.kernel('mlp_up', { x: input(f32), weight: input(f32), hidden: output(f32), sizes: Sizes });
const mlpDown = module.kernel('mlp_down', { hidden: input(f32), weight: input(f32), x: inout(f32), sizes: Sizes });

let state = 1;
/** The same numbers in every run, between -scale and scale. */
const numbers = (length: number, scale: number) =>
  Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return scale * (state / 2 ** 31 - 1);
  });
const weights: Weights = {
  gain: numbers(WIDTH, 1),
  qkv: numbers(WIDTH * 3 * WIDTH, 0.2),
  out: numbers(WIDTH * WIDTH, 0.2),
  up: numbers(WIDTH * HIDDEN, 0.2),
  down: numbers(HIDDEN * WIDTH, 0.2),
};

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
await device.compile(layerNorm, projectQkv, attention, projectOut, mlpUp, mlpDown);
using gain = device.from(weights.gain);
using qkvWeight = device.from(weights.qkv);
using outWeight = device.from(weights.out);
using upWeight = device.from(weights.up);
using downWeight = device.from(weights.down);

/** Submits the kernels of the block, which change `x` in place. */
function block({ stream, empty }: Lane, x: DeviceArray<'f32'>): void {
  const tokens = x.length / WIDTH;
  const sizes = { tokens, width: WIDTH, hidden: HIDDEN };
  const tiles = (columns: number) => ({ grid: [Math.ceil(columns / TILE), Math.ceil(tokens / TILE)], block: [TILE, TILE] }) as const;
  const [normed, qkv] = [empty(tokens * WIDTH), empty(tokens * 3 * WIDTH)];
  const [attended, hidden] = [empty(tokens * WIDTH), empty(tokens * HIDDEN)];
  stream.launch(layerNorm, { grid: tokens, block: WARP }, { x, gain, y: normed, sizes });
  stream.launch(projectQkv, tiles(3 * WIDTH), { x: normed, weight: qkvWeight, qkv, sizes });
  stream.launch(attention, { grid: [tokens, WIDTH / HEAD], block: WARP }, { qkv, attended, sizes });
  stream.launch(projectOut, tiles(WIDTH), { attended, weight: outWeight, x, sizes });
  stream.launch(layerNorm, { grid: tokens, block: WARP }, { x, gain, y: normed, sizes });
  stream.launch(mlpUp, tiles(HIDDEN), { x: normed, weight: upWeight, hidden, sizes });
  stream.launch(mlpDown, tiles(WIDTH), { hidden, weight: downWeight, x, sizes });
}

const sequences = LENGTHS.map((tokens) => numbers(tokens * WIDTH, 1));
const startMs = performance.now();
const outputs$ = overlap(device, sequences, { depth: 3 }, (sequence, lane) => {
  const pinned = lane.pinned(sequence.length);
  pinned.data.set(sequence);
  return of(pinned).pipe(
    upload(lane),
    tap((x) => block(lane, x)),
    download(lane),
  );
});
const outputs = await lastValueFrom(outputs$.pipe(toArray()));
const seconds = (performance.now() - startMs) / 1000;

for (const [n, sequence] of sequences.entries()) {
  const expected = referenceBlock(sequence, weights);
  assert.ok(outputs[n]!.every((value, i) => Math.abs(value - expected[i]!) < 1e-3));
  console.log(`sequence ${n}: ${LENGTHS[n]} tokens, as in plain TypeScript`);
}
const tokens = LENGTHS.reduce((sum, length) => sum + length, 0);
console.log(`${(tokens / seconds).toFixed(0)} tokens/s`);
// prints: sequence 0: 48 tokens, as in plain TypeScript
// prints: sequence 1: 33 tokens, as in plain TypeScript
// prints: sequence 2: 64 tokens, as in plain TypeScript
// prints: sequence 3: 17 tokens, as in plain TypeScript
// prints: sequence 4: 50 tokens, as in plain TypeScript
// prints: sequence 5: 40 tokens, as in plain TypeScript
// prints: 1127 tokens/s
