// Joins ranks of several processes.
// Thread: owner.
import { badArgument, checkInteger, refuseSurplus, show } from '../../core/base/arguments.js';
import { refuseApart } from '../../core/base/apart.js';
import { UnsupportedError } from '../../core/base/errors.js';
import { checkOptionNames } from '../../core/base/option-names.js';
import { checkOpenDevice, type DeviceLike } from '../../core/api/open-devices.js';
import { JoinedCpu } from './joined-cpu.js';
import { JoinedNccl } from './joined-nccl.js';
import { launchedBy } from './launchers.js';
import { Member } from './member.js';
import type { JoinedCommunicator } from './types.js';

const DEFAULT_PORT = 29_500;
const DEFAULT_TIMEOUT_MS = 30_000;
const MOST_RANKS = 1024;

/** Options of `joinCommunicator`. Bad values are an ArgumentError. */
export interface JoinOptions {
  /** The device of this rank, which is open. */
  readonly device: DeviceLike;
  /** The number of this rank. Default: what the launcher says (`RANK` of torchrun, and those of Slurm, Open MPI, MPICH and Kubernetes). */
  readonly rank?: number;
  /** The number of ranks. Default: what the launcher says (`WORLD_SIZE`). */
  readonly size?: number;
  /** Where rank 0 opens its store, and the others find it. Default: `MASTER_ADDR` and `MASTER_PORT`, else port 29500 of this machine. */
  readonly store?: { readonly host?: string; readonly port?: number };
  /** What all ranks know and nobody else. Default: `MILLRACE_SECRET`. A store that other machines reach needs one. */
  readonly secret?: string;
  /** How long ranks wait for each other, to join and in each collective, and how long one may be silent: milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
}

/**
 * Joins this process as one rank of a communicator, when all ranks have called it: `ncclCommInitRank`, `torch.distributed.init_process_group`. Rank 0
 * opens a small store, which is only for the CPU devices' elements, NCCL's id, and to notice ranks that are gone. Rejects with ArgumentError,
 * UnavailableError without NCCL, and CollectiveError: 'timeout' if not all come, 'failed' for a rank that is refused.
 * @example
 * // torchrun --nproc-per-node 2 --no-python node train.js
 * const group = await joinCommunicator({ device: `cuda:${process.env.LOCAL_RANK}` });
 * await group.allReduce(gradients, { op: 'mean', into: gradients }).done;
 */
export async function joinCommunicator(opts: JoinOptions): Promise<JoinedCommunicator> {
  if (arguments.length > 1) refuseSurplus('joinCommunicator', arguments, 1);
  checkOptionNames(opts, ['device', 'rank', 'size', 'store', 'secret', 'timeoutMs']);
  const device = checkOpenDevice('device', opts.device);
  const launched = launchedBy(process.env);
  const size = checkInteger('size', needed('size', opts.size ?? launched.size, launched.launcher), 1, MOST_RANKS);
  const rank = checkInteger('rank', needed('rank', opts.rank ?? launched.rank, launched.launcher), 0, size - 1);
  const timeoutMs = checkInteger('timeoutMs', opts.timeoutMs ?? DEFAULT_TIMEOUT_MS, 1, 2 ** 31 - 1);
  const { host = launched.host ?? '127.0.0.1', port = launched.port ?? DEFAULT_PORT } = opts.store ?? {};
  const { secret = process.env['MILLRACE_SECRET'] ?? '' } = opts;
  if (typeof secret !== 'string') throw badArgument('secret', undefined, 'The secret is not a string.');
  if (secret === '' && !/^(?:127\.|localhost$|::1$)/.test(host)) {
    const message = `A store that other machines reach (${show(host)}) needs a secret: give one, or set MILLRACE_SECRET, the same on all ranks.`;
    throw badArgument('secret', undefined, message);
  }
  refuseApart(device.core, 'A communicator');
  const { communicators } = device.core.channel;
  const kind = device.info.backend;
  if (kind === 'cuda' && communicators === undefined) {
    const message = `Device ${device.info.id} has no library of collectives.`;
    throw new UnsupportedError('ERR_MILLRACE_UNSUPPORTED', message, 'collectives', { device: device.info.id });
  }
  const makeId = (): Uint8Array | undefined => communicators?.makeId();
  const joining = { rank, size, host, port: checkInteger('port', port, 1, 65_535), secret, timeoutMs, kind, makeId };
  const member = await Member.join(joining);
  return communicators === undefined ? new JoinedCpu(device, member, timeoutMs) : JoinedNccl.open(device, member, timeoutMs, communicators);
}

function needed(name: string, value: number | undefined, launcher: string): number {
  if (value !== undefined) return value;
  const said = launcher === 'no launcher' ? 'no launcher says it in the environment' : `${launcher} does not say it in the environment`;
  throw badArgument(name, value, `The ${name} of the communicator is not given, and ${said}.`);
}
