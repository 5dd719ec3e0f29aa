// The command line.
import type { DeviceSpec } from 'millrace';
import { parseOrRefuse, Refusal, whole } from '../command-line.js';
import { type Engine, ENGINES, type PredictorOptions } from './predictor.js';

const HELP = `Usage: service [options]

Reads handwritten digits over HTTP and WebSocket and finds the faces of pictures, in batches on a GPU or on the CPU device.

  --port N               (default: 8080; 0 takes a free one)
  --host ADDRESS         (default: 127.0.0.1)
  --workers N            threads that serve, with the device in common (default: 1)
  --device NAME          auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --engine NAME          batched, single (one digit a launch) or plain (TypeScript without a device) (default: batched)
  --target-latency-ms N  how late 95 of 100 answers may be (default: 20)
  --max-items N          digits of a batch (default: 64)
  --max-queue N          requests of a thread that may wait; others get 503 (default: 64)
  --max-queue-ms N       how long one may wait for a batch; then it gets 503 (default: the target)
  --drain-ms N           after SIGTERM, how long connections are still accepted while /ready answers 503 (default: 500)
  --parameters FILE      what examples/training has learnt (default: examples/service/digits.f32)
  --no-faces             digits alone
  --help
`;

export interface Options extends PredictorOptions {
  readonly port: number;
  readonly host: string;
  readonly workers: number;
  readonly device: DeviceSpec;
  readonly parameters: string;
  readonly drainMs: number;
  readonly hasFaces: boolean;
}

const OPTIONS = {
  port: { type: 'string', default: '8080' },
  host: { type: 'string', default: '127.0.0.1' },
  workers: { type: 'string', default: '1' },
  device: { type: 'string', default: 'auto' },
  engine: { type: 'string', default: 'batched' },
  'target-latency-ms': { type: 'string', default: '20' },
  'max-items': { type: 'string', default: '64' },
  'max-queue': { type: 'string', default: '64' },
  'max-queue-ms': { type: 'string' },
  'drain-ms': { type: 'string', default: '500' },
  parameters: { type: 'string', default: 'examples/service/digits.f32' },
  'no-faces': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values } = parseOrRefuse(HELP, { args: [...args], options: OPTIONS });
  const engine = ENGINES.find((name) => name === values.engine) satisfies Engine | undefined;
  if (engine === undefined) throw new Refusal(`--engine ${values.engine} is none of ${ENGINES.join(', ')}.`);
  const maxItems = whole('max-items', values['max-items'], 1, 1024);
  const targetLatencyMs = whole('target-latency-ms', values['target-latency-ms'], 1, 10_000);
  return {
    port: whole('port', values.port, 0, 65_535),
    host: values.host,
    workers: whole('workers', values.workers, 1, 64),
    // A name that no device has is refused by openDevice.
    device: values.device as DeviceSpec,
    parameters: values.parameters,
    drainMs: whole('drain-ms', values['drain-ms'], 0, 600_000),
    hasFaces: !values['no-faces'],
    engine,
    targetLatencyMs,
    maxItems,
    maxWaitMs: 1,
    maxQueue: whole('max-queue', values['max-queue'], maxItems, 1_000_000),
    maxQueueMs: whole('max-queue-ms', values['max-queue-ms'] ?? String(targetLatencyMs), 0, 60_000),
  };
}
