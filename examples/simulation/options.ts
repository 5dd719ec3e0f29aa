// The command line.
import type { DeviceSpec } from 'millrace';
import { parseOrRefuse, Refusal, whole } from '../command-line.js';
import { DROP_RADIUS } from './kernels.js';
import { PERIOD } from './membrane.js';

const HELP = `Usage: simulation [options]

Drops fall on a membrane: the two-dimensional wave equation, ${PERIOD} steps a graph. Writes pictures, and compares the time with that of the
same steps launched one by one.

  --device NAME   auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --steps N       a multiple of ${PERIOD} (default: 10000)
  --size N        rows and columns of the membrane (default: 256)
  --frames N      pictures of the run (default: 50)
  --out FOLDER    where the pictures go (default: out/simulation)
  --help
`;

export interface Options {
  readonly device: DeviceSpec;
  readonly steps: number;
  readonly size: number;
  readonly frames: number;
  readonly out: string;
}

const MIN_SIZE = 4 * DROP_RADIUS;
/** The membrane and its picture then take 176 MB of the device. */
const MAX_SIZE = 4096;
const MAX_STEPS = 100_000_000;

const OPTIONS = {
  device: { type: 'string', default: 'auto' },
  steps: { type: 'string', default: '10000' },
  size: { type: 'string', default: '256' },
  frames: { type: 'string', default: '50' },
  out: { type: 'string', default: 'out/simulation' },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  const steps = whole('steps', values.steps, PERIOD, MAX_STEPS);
  if (steps % PERIOD !== 0) throw new Refusal(`--steps ${steps} is not a multiple of ${PERIOD}, the steps of the graph.`);
  const size = whole('size', values.size, MIN_SIZE, MAX_SIZE);
  const frames = whole('frames', values.frames, 0, steps / PERIOD);
  // A name that no device has is refused by openDevice.
  return { device: values.device as DeviceSpec, steps, size, frames, out: values.out };
}
