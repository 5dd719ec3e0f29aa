// The command line.
import type { DeviceSpec } from 'millrace';
import { parseOrRefuse, Refusal, whole } from '../command-line.js';
import { type Source, type SourceOptions, sourceOf } from './sources.js';

const HELP = `Usage: live [options]

Computes pictures on a GPU or on the CPU device, and shows them in any number of browsers.

  --source NAME   fluid, clip (made here, through a filter), or ffmpeg:FILE (a file or /dev/video0, through a filter) (default: fluid)
  --size WxH      of the pictures (default: 384x216)
  --fps N         pictures a second (default: 30)
  --device NAME   auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --port N        (default: 8081; 0 takes a free one)
  --host ADDRESS  (default: 127.0.0.1)
  --help
`;

export interface Options extends SourceOptions {
  readonly source: Source;
  readonly device: DeviceSpec;
  readonly port: number;
  readonly host: string;
}

const OPTIONS = {
  source: { type: 'string', default: 'fluid' },
  size: { type: 'string', default: '384x216' },
  fps: { type: 'string', default: '30' },
  device: { type: 'string', default: 'auto' },
  port: { type: 'string', default: '8081' },
  host: { type: 'string', default: '127.0.0.1' },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  const [, width, height] = /^(\d+)x(\d+)$/.exec(values.size) ?? [];
  if (width === undefined || height === undefined) throw new Refusal(`--size ${values.size} is not as 384x216.`);
  return {
    source: sourceOf(values.source),
    width: whole('size', width, 16, 4096),
    height: whole('size', height, 16, 4096),
    fps: whole('fps', values.fps, 1, 240),
    // A name that no device has is refused by openDevice.
    device: values.device as DeviceSpec,
    port: whole('port', values.port, 0, 65_535),
    host: values.host,
  };
}
