// Exact nearest neighbours: every query is compared with every vector, many queries at a time, in one product of matrices.
import { createBatcher, type Device, type DeviceArray, type Lane, type Lanes, overlap, type Overlapped, type WaitOptions } from 'millrace';
import { astype, matmul, put, topk } from 'millrace/ops';

/** The element types of stored vectors. */
export type Precision = 'f32' | 'f16';

export interface Hit {
  /** The number of the vector. */
  readonly row: number;
  /** Its dot product with the query. */
  readonly score: number;
}

export interface IndexOptions {
  /** Hits of a query. */
  readonly k: number;
  /** Queries of a batch; their scores take 4 bytes for each query and vector. */
  readonly maxItems: number;
  readonly maxQueue: number;
}

/** Vectors on a device. They may change while queries run: a batch sees all of an update or nothing of it. */
export class VectorIndex implements AsyncDisposable {
  readonly size: number;
  readonly #device: Device;
  readonly #vectors: DeviceArray<Precision>;
  readonly #batcher: Lanes<Float32Array, readonly Hit[]>;
  readonly #options: IndexOptions;

  /** Takes over `vectors`, a row for each. */
  constructor(device: Device, vectors: DeviceArray<Precision>, options: IndexOptions) {
    this.#device = device;
    this.#vectors = vectors;
    this.#options = options;
    this.size = vectors.shape[1]!;
    const { maxItems, maxQueue } = options;
    // One lane: two batches at once would share the memory's bandwidth, and each be late.
    this.#batcher = createBatcher(device, { depth: 1, maxItems, maxWaitMs: 0, maxQueue }, (queries, lane) => this.#search(queries, lane));
  }

  /** The best hits, the best one first. Queries that come while a batch is computed share the next one. */
  search(query: Float32Array, opts?: WaitOptions): Promise<readonly Hit[]> {
    if (query.length !== this.size) throw new RangeError(`The query has ${query.length} numbers, not ${this.size}.`);
    return this.#batcher.run(query, opts);
  }

  /** The hits of batches of queries, in order, as they are ready. A slow reader delays the source. */
  stream(batches: Iterable<readonly Float32Array[]> | AsyncIterable<readonly Float32Array[]>): Overlapped<readonly (readonly Hit[])[]> {
    return overlap(this.#device, batches, { depth: 2 }, (queries, lane) => this.#search(queries, lane));
  }

  /** Writes vectors over the rows of these numbers. Resolves when queries find them. */
  async update(rows: readonly number[], vectors: Float32Array): Promise<void> {
    using numbers = this.#device.from(Int32Array.from(rows));
    using values = this.#device.from(vectors, { shape: [rows.length, this.size] });
    using stored = astype(values, this.#vectors.dtype);
    put(this.#vectors, numbers, stored);
    await this.#device.stream.record().done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batcher.close();
    this.#vectors[Symbol.dispose]();
  }

  async #search(queries: readonly Float32Array[], lane: Lane): Promise<(readonly Hit[])[]> {
    const { k } = this.#options;
    const pinned = lane.pinned([queries.length, this.size], 'f32');
    for (const [at, query] of queries.entries()) pinned.data.set(query, at * this.size);
    const given = lane.empty([queries.length, this.size]);
    lane.stream.copy(given, pinned);
    const own = this.#vectors.dtype === 'f32' ? given : astype(given, this.#vectors.dtype, { stream: lane });
    // A column of scores for each query: the vectors are read in their order.
    const scores = matmul(this.#vectors, own.transpose(), { stream: lane, dtype: 'f32' });
    const best = topk(scores, k, { axis: 0, stream: lane });
    const [values, rows] = await Promise.all([best.values.read(), best.indices.read()]);
    return queries.map((_, query) =>
      Array.from({ length: k }, (__, n) => ({ row: rows[n * queries.length + query]!, score: values[n * queries.length + query]! })),
    );
  }
}
