// The command line.
import type { DeviceSpec } from 'millrace';
import { parseOrRefuse, whole } from '../command-line.js';

const HELP = `Usage: training [options]

Teaches a small network to read handwritten digits, on a GPU or on the CPU device, and draws what came of it.

  --device NAME   auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --epochs N      times that each digit is seen (default: 12)
  --sheets N      files of 500 digits to learn from, 1 to 16 (default: 16)
  --seed N        of the first parameters, the order and the changes of the digits (default: 1)
  --data FOLDER   the digits (default: examples/training/data)
  --out FOLDER    where the pictures, the checkpoint and the parameters go (default: out/training)
  --resume        go on from the checkpoint in the folder of the results, with the same --seed and --sheets
  --help
`;

export interface Options {
  readonly device: DeviceSpec;
  readonly epochs: number;
  readonly sheets: number;
  readonly seed: number;
  readonly data: string;
  readonly out: string;
  readonly isResumed: boolean;
}

const OPTIONS = {
  device: { type: 'string', default: 'auto' },
  epochs: { type: 'string', default: '12' },
  sheets: { type: 'string', default: '16' },
  seed: { type: 'string', default: '1' },
  data: { type: 'string', default: 'examples/training/data' },
  out: { type: 'string', default: 'out/training' },
  resume: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  return {
    // A name that no device has is refused by openDevice.
    device: values.device as DeviceSpec,
    epochs: whole('epochs', values.epochs, 1, 1000),
    sheets: whole('sheets', values.sheets, 1, 16),
    seed: whole('seed', values.seed, 0, 2 ** 31 - 1),
    data: values.data,
    out: values.out,
    isResumed: values.resume,
  };
}
