// Nearest neighbours among 20,000 embeddings. Queries of several callers go through the device in one launch.
import { createBatcher, f32, input, kernel, openDevice, output, type DeviceSpec } from 'millrace';
import { firstValueFrom, from, mergeMap, toArray } from 'rxjs';

const DOCUMENTS = 20_000;
const SIZE = 64;

const similarity = kernel(
  'similarity',
  { queries: input(f32, 2), index: input(f32, 2), scores: output(f32, 2) },
  ({ queries, index, scores }, { i, j }) => {
    let sum = 0;
    for (let k = 0; k < index.shape[0]; k++) sum += queries[i]![k]! * index[k]![j]!;
    scores[i]![j] = sum;
  },
);

/** The same numbers at every run, between -1 and 1. */
function noise(seed: number): number {
  const x = Math.sin(seed * 12.9898) * 43_758.5453;
  return 2 * (x - Math.floor(x)) - 1;
}
const embedding = (document: number) => Float32Array.from({ length: SIZE }, (_, k) => noise(document * SIZE + k));

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
// One column for each document, so that neighbouring threads read neighbouring elements.
const columns = new Float32Array(SIZE * DOCUMENTS);
for (let d = 0; d < DOCUMENTS; d++) embedding(d).forEach((value, k) => (columns[k * DOCUMENTS + d] = value));
using index = device.from(columns, { shape: [SIZE, DOCUMENTS] });

let batches = 0;
await using batcher = createBatcher(
  device,
  { maxItems: 32, maxWaitMs: 100, maxQueue: 1000 },
  async (vectors: readonly Float32Array[], lane) => {
    batches++;
    const queries = lane.from(Float32Array.from(vectors.flatMap((vector) => [...vector])), { shape: [vectors.length, SIZE] });
    const scores = lane.empty([vectors.length, DOCUMENTS]);
    lane.stream.launch(similarity, [vectors.length, DOCUMENTS], { queries, index, scores });
    const all = await scores.read();
    return vectors.map((_, q) => indexOfLargest(all.subarray(q * DOCUMENTS, (q + 1) * DOCUMENTS)));
  },
);

function indexOfLargest(values: Float32Array): number {
  let best = 0;
  values.forEach((value, at) => {
    if (value > values[best]!) best = at;
  });
  return best;
}

/** 64 callers ask for a document, each with an embedding that is a little off. */
const wanted = Array.from({ length: 64 }, (_, n) => (n * 311) % DOCUMENTS);
const found = await firstValueFrom(
  from(wanted).pipe(
    mergeMap(async (document) => {
      const query = embedding(document).map((value, k) => value + 0.1 * noise(1e7 + k));
      return (await batcher.run(query)) === document;
    }),
    toArray(),
  ),
);
console.log('found:', found.filter(Boolean).length, 'of', found.length); // prints: found: 64 of 64
console.log('launches:', batches); // prints: launches: 2
