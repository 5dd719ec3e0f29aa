// Trains one model on several devices: each has a part of the data, and the gradients are averaged after each step. See README.md beside this file.
import { createHash } from 'node:crypto';
import { type Device, listDevices, openDevice, type Stream } from 'millrace';
import { joinCommunicator, openCommunicator } from 'millrace/collectives';
import { Replica } from './model.js';

const [STEPS, ROWS] = [60, 512];

const digest = async ({ parameters }: Replica): Promise<string> =>
  createHash('sha256')
    .update(new Uint8Array(((await parameters.read()) as Float32Array).buffer))
    .digest('hex')
    .slice(0, 12);

async function tell(rank: number, device: Device, before: number, replica: Replica): Promise<void> {
  const after = await replica.loss();
  console.log(
    `rank ${rank}  ${device.info.id}  loss ${before.toFixed(4)} -> ${after.toExponential(1)}  parameters ${await digest(replica)}`,
  );
}

/** Makes the steps, by --graph as launches of one graph of all devices. */
async function train(devices: readonly Device[], step: () => void): Promise<void> {
  if (!isGraph) {
    for (let n = 0; n < STEPS; n++) step();
    return;
  }
  const [stream, ...others] = devices.map((device) => device.stream) as [Stream, ...Stream[]];
  await using graph = stream.capture(() => {
    for (const other of others) other.waitStream(stream);
    step();
    for (const other of others) stream.waitStream(other);
  });
  for (let n = 0; n < STEPS; n++) graph.launch();
}

/** All devices in this process: one call for all ranks. */
async function inOneProcess(names: readonly string[]): Promise<void> {
  const devices = await Promise.all(names.map((name) => openDevice(name as 'cpu:0')));
  await using group = await openCommunicator(devices);
  const replicas = devices.map((device, rank) => new Replica(device, rank, ROWS));
  const before = await Promise.all(replicas.map((replica) => replica.loss()));
  const gradients = replicas.map((replica) => replica.gradients);
  const step = (): void => {
    for (const replica of replicas) replica.differentiate();
    group.allReduce(gradients, { op: 'mean', into: gradients, label: 'gradients' });
    for (const replica of replicas) replica.step();
  };
  await train(devices, step);
  for (const [rank, replica] of replicas.entries()) await tell(rank, devices[rank]!, before[rank]!, replica);
  for (const replica of replicas) replica[Symbol.dispose]();
  await group.close();
  for (const device of devices) await device.close();
}

/** This process is one rank; a launcher starts the others. */
async function asOneRank(name: string): Promise<void> {
  const device = await openDevice(name as 'cpu');
  await using group = await joinCommunicator({ device });
  const replica = new Replica(device, group.rank, ROWS);
  const before = await replica.loss();
  await train([device], () => {
    replica.differentiate();
    group.allReduce(replica.gradients, { op: 'mean', into: replica.gradients, label: 'gradients' });
    replica.step();
  });
  await tell(group.rank, device, before, replica);
  await group.barrier().done;
  replica[Symbol.dispose]();
  await group.close();
  await device.close();
}

const isGraph = process.argv.includes('--graph');
const isJoined = process.argv.includes('--joined');
const given = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const gpus = (await listDevices()).filter(({ backend }) => backend === 'cuda').map(({ id }) => id);
if (isJoined) await asOneRank(given[0] ?? (gpus.length > 0 ? `cuda:${process.env['LOCAL_RANK'] ?? 0}` : 'cpu'));
else await inOneProcess(given.length > 0 ? given : gpus.length > 1 ? gpus : ['cpu:0', 'cpu:1']);
