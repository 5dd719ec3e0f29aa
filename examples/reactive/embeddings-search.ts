// Nearest neighbours among 20,000 embeddings. Queries of several callers go through the device in one product of matrices.
import { createBatcher, openDevice, type DeviceSpec } from 'millrace';
import { argmax, matmul } from 'millrace/ops';
import { firstValueFrom, from, mergeMap, toArray } from 'rxjs';

const DOCUMENTS = 20_000;
const SIZE = 64;

/** The same numbers at every run, between -1 and 1. */
function noise(seed: number): number {
  const x = Math.sin(seed * 12.9898) * 43_758.5453;
  return 2 * (x - Math.floor(x)) - 1;
}
const embedding = (document: number) => Float32Array.from({ length: SIZE }, (_, k) => noise(document * SIZE + k));

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
const rows = Float32Array.from({ length: DOCUMENTS * SIZE }, (_, n) => noise(n));
using index = device.from(rows, { shape: [DOCUMENTS, SIZE] });

let batches = 0;
await using batcher = createBatcher(
  device,
  { maxItems: 32, maxWaitMs: 100, maxQueue: 1000 },
  async (vectors: readonly Float32Array[], lane) => {
    batches++;
    const queries = lane.from(Float32Array.from(vectors.flatMap((vector) => [...vector])), { shape: [vectors.length, SIZE] });
    const scores = matmul(queries, index.transpose(), { stream: lane });
    return [...(await argmax(scores, { axis: 1, stream: lane }).read())];
  },
);

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
console.log('batches:', batches); // prints: batches: 2
