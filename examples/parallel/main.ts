// Trains one network on several devices: each has a part of the data, and the gradients are averaged in each step. See README.md beside this file.
import { createHash } from 'node:crypto';
import { type Device, listDevices, openDevice, type Stream } from 'millrace';
import { joinCommunicator, openCommunicator } from 'millrace/collectives';
import { parseOrRefuse, Refusal, run, whole } from '../command-line.js';
import { Replica, type Sizes } from './model.js';

const HELP = `node build/js/examples/parallel/main.js [device ...] [options]

  device ...     the devices of this process; by default all GPUs, or two CPU devices
  --joined       this process is one rank; a launcher starts the others
  --graph        a step is one graph
  --parts N      parts of the data, of which each device has as many; by default one for each device
  --width N      inputs and outputs of a layer (32)
  --layers N     (3)
  --rows N       rows of a part (512)
  --steps N      (60)
`;

/** Averages the gradients of a layer over all devices. */
type Average = (layer: number) => void;

function step(replicas: readonly Replica[], { layers }: Sizes, average: Average): void {
  const { parts } = replicas[0]!;
  for (let part = 0; part < parts; part++) {
    for (const replica of replicas) replica.forward(part);
    for (let layer = layers - 1; layer >= 0; layer--) {
      for (const replica of replicas) replica.backward(part, layer);
      // On streams of its own: the layers before go on meanwhile.
      if (part === parts - 1) average(layer);
    }
  }
  for (const replica of replicas) replica.step();
}

/** Makes the steps, as launches of one graph of all devices or call by call. Returns the milliseconds of a step, without the first ones. */
async function train(
  devices: readonly Device[],
  sides: readonly Stream[],
  steps: number,
  isGraph: boolean,
  once: () => void,
): Promise<number> {
  const [stream, ...others] = [...devices.map((device) => device.stream), ...sides] as [Stream, ...Stream[]];
  await using graph = isGraph
    ? stream.capture(() => {
        for (const other of others) other.waitStream(stream);
        once();
        for (const other of others) stream.waitStream(other);
      })
    : undefined;
  const first = Math.min(5, steps - 1);
  let start = 0;
  for (let n = 0; n < steps; n++) {
    if (n === first) {
      await Promise.all(devices.map((device) => device.synchronize()));
      start = performance.now();
    }
    if (graph === undefined) once();
    else graph.launch();
  }
  await Promise.all(devices.map((device) => device.synchronize()));
  return (performance.now() - start) / (steps - first);
}

async function tell(rank: number, device: Device, before: number, replica: Replica): Promise<void> {
  const hash = createHash('sha256');
  for (const array of replica.parameters) hash.update(new Uint8Array(((await array.read()) as Float32Array).buffer));
  const after = await replica.loss();
  console.log(
    `rank ${rank}  ${device.info.id}  loss ${before.toFixed(4)} -> ${after.toExponential(3)}  parameters ${hash.digest('hex').slice(0, 12)}`,
  );
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, n) => from + n);

interface Run {
  readonly sizes: Sizes;
  readonly steps: number;
  readonly isGraph: boolean;
  /** Of the data; undefined: one for each device. */
  readonly parts: number | undefined;
}

function partsOfEach(parts: number, devices: number): number {
  if (parts % devices !== 0) throw new Refusal(`--parts ${parts} is not a multiple of ${devices}, the number of devices.`);
  return parts / devices;
}

/** All devices in this process: one call for all ranks. */
async function inOneProcess(names: readonly string[], { sizes, steps, isGraph, parts }: Run): Promise<void> {
  const each = partsOfEach(parts ?? names.length, names.length);
  const devices = await Promise.all(names.map((name) => openDevice(name as 'cpu:0')));
  await using group = await openCommunicator(devices);
  const sides = devices.map((device) => device.createStream({ label: 'gradients' }));
  const replicas = devices.map((device, rank) => new Replica(device, range(rank * each, each), sizes));
  const before = await Promise.all(replicas.map((replica) => replica.loss()));
  const average: Average = (layer) => {
    const gradients = replicas.map((replica) => replica.gradients[layer]!);
    if (devices.length > 1) group.allReduce(gradients, { op: 'mean', into: gradients, streams: sides, label: `gradients ${layer}` });
  };
  const ms = await train(devices, sides, steps, isGraph, () => step(replicas, sizes, average));
  for (const [rank, replica] of replicas.entries()) await tell(rank, devices[rank]!, before[rank]!, replica);
  console.log(`${ms.toFixed(3)} ms a step`);
  for (const replica of replicas) replica[Symbol.dispose]();
  await group.close();
  for (const device of devices) await device.close();
}

/** This process is one rank. */
async function asOneRank(name: string, { sizes, steps, isGraph, parts }: Run): Promise<void> {
  const device = await openDevice(name as 'cpu');
  await using group = await joinCommunicator({ device });
  const each = partsOfEach(parts ?? group.size, group.size);
  const side = device.createStream({ label: 'gradients' });
  const replica = new Replica(device, range(group.rank * each, each), sizes);
  const before = await replica.loss();
  const average: Average = (layer) => {
    const gradient = replica.gradients[layer]!;
    group.allReduce(gradient, { op: 'mean', into: gradient, stream: side, label: `gradients ${layer}` });
  };
  const ms = await train([device], [side], steps, isGraph, () => step([replica], sizes, average));
  await tell(group.rank, device, before, replica);
  if (group.rank === 0) console.log(`${ms.toFixed(3)} ms a step`);
  await group.barrier().done;
  replica[Symbol.dispose]();
  await group.close();
  await device.close();
}

await run(async (args) => {
  const { values, positionals } = parseOrRefuse(HELP, {
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean' },
      joined: { type: 'boolean' },
      graph: { type: 'boolean', default: false },
      parts: { type: 'string' },
      width: { type: 'string', default: '32' },
      layers: { type: 'string', default: '3' },
      rows: { type: 'string', default: '512' },
      steps: { type: 'string', default: '60' },
    },
  });
  const sizes = {
    width: whole('width', values.width, 1, 2 ** 15),
    layers: whole('layers', values.layers, 1, 1000),
    rows: whole('rows', values.rows, 1, 2 ** 20),
  };
  const parts = values.parts === undefined ? undefined : whole('parts', values.parts, 1, 1000);
  const one = { sizes, steps: whole('steps', values.steps, 1, 1e6), isGraph: values.graph, parts };
  const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);
  if (values.joined === true) await asOneRank(positionals[0] ?? (gpus.length > 0 ? `cuda:${process.env['LOCAL_RANK'] ?? 0}` : 'cpu'), one);
  else await inOneProcess(positionals.length > 0 ? positionals : gpus.length > 1 ? gpus : ['cpu:0', 'cpu:1'], one);
  return 0;
});
