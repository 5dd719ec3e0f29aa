// The command line.
import type { DeviceSpec } from 'millrace';
import { parseOrRefuse, Refusal, whole } from '../command-line.js';
import type { Precision } from './vector-index.js';

const HELP = `Usage: search [options]

Finds the nearest of many vectors, exactly, on a GPU or on the CPU device, while some of the vectors change, and prints what it costs.

  --device NAME     auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --vectors N       (default: 1000000)
  --size N          numbers of a vector, a multiple of 4 (default: 384)
  --precision NAME  f32 or f16 (default: f32)
  --queries N       (default: 256)
  --batch N         queries of a batch (default: 32)
  --k N             hits of a query (default: 10)
  --beside LIST     what else to measure: plain, cpp, hnsw, or none (default: plain)
  --help
`;

export type Beside = 'plain' | 'cpp' | 'hnsw';

export interface Options {
  readonly device: DeviceSpec;
  readonly vectors: number;
  readonly size: number;
  readonly precision: Precision;
  readonly queries: number;
  readonly batch: number;
  readonly k: number;
  readonly beside: readonly Beside[];
}

const OPTIONS = {
  device: { type: 'string', default: 'auto' },
  vectors: { type: 'string', default: '1000000' },
  size: { type: 'string', default: '384' },
  precision: { type: 'string', default: 'f32' },
  queries: { type: 'string', default: '256' },
  batch: { type: 'string', default: '32' },
  k: { type: 'string', default: '10' },
  beside: { type: 'string', default: 'plain' },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  const { precision } = values;
  if (precision !== 'f32' && precision !== 'f16') throw new Refusal(`--precision ${precision} is neither f32 nor f16.`);
  const beside = values.beside === 'none' ? [] : values.beside.split(',');
  for (const name of beside) {
    if (!['plain', 'cpp', 'hnsw'].includes(name)) throw new Refusal(`--beside ${name} is none of plain, cpp and hnsw.`);
  }
  const size = whole('size', values.size, 4, 4096);
  if (size % 4 !== 0) throw new Refusal(`--size ${size} is not a multiple of 4.`);
  const vectors = whole('vectors', values.vectors, 1000, 5_000_000);
  // An operation of millrace/ops has room for 2^31 - 1 elements.
  if (vectors * size >= 2 ** 31) throw new Refusal(`--vectors ${vectors} of --size ${size} are more than 2147483647 numbers.`);
  return {
    // A name that no device has is refused by openDevice.
    device: values.device as DeviceSpec,
    vectors,
    size,
    precision,
    queries: whole('queries', values.queries, 1, 100_000),
    batch: whole('batch', values.batch, 1, 256),
    k: whole('k', values.k, 1, 100),
    beside: beside as Beside[],
  };
}
