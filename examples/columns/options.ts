// The command line.
import type { DeviceSpec } from 'millrace';
import { parseOrRefuse, Refusal, whole } from '../command-line.js';

const HELP = `Usage: columns [options]

Filters and groups the trips of an Arrow file on a GPU or on the CPU device, and beside that in plain JavaScript.

  --file FILE     (default: out/columns/trips.arrow)
  --rows N        makes the file with so many trips, 9 bytes each, and ends
  --least-km N    shorter trips do not count (default: 2)
  --device NAME   auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --out FILE      where the table goes, as an Arrow file (default: nowhere)
  --help
`;

export interface Options {
  readonly file: string;
  readonly rows: number | undefined;
  readonly leastKm: number;
  readonly device: DeviceSpec;
  readonly out: string | undefined;
}

const OPTIONS = {
  file: { type: 'string', default: 'out/columns/trips.arrow' },
  rows: { type: 'string' },
  'least-km': { type: 'string', default: '2' },
  device: { type: 'string', default: 'auto' },
  out: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  const leastKm = Number(values['least-km']);
  if (values['least-km'].trim() === '' || !(leastKm >= 0 && leastKm <= 1e6))
    throw new Refusal(`--least-km ${values['least-km']} is not a number from 0 to 1000000.`);
  return {
    file: values.file,
    rows: values.rows === undefined ? undefined : whole('rows', values.rows, 1, 1_000_000_000),
    leastKm,
    // A name that no device has is refused by openDevice.
    device: values.device as DeviceSpec,
    out: values.out,
  };
}
