// Which rank this process is, as launchers say it in the environment.

export interface Launched {
  readonly rank?: number;
  readonly size?: number;
  readonly localRank?: number;
  readonly host?: string;
  readonly port?: number;
  /** Of messages. */
  readonly launcher: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** In the order in which they are asked: torchrun's names may also be set by hand, and Slurm also sets its own for a shell. */
const LAUNCHERS = [
  ['torchrun', 'RANK', 'WORLD_SIZE', 'LOCAL_RANK'],
  ['Open MPI', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_RANK'],
  ['MPICH', 'PMI_RANK', 'PMI_SIZE', 'MPI_LOCALRANKID'],
  ['Slurm', 'SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'],
  ['a Kubernetes indexed job', 'JOB_COMPLETION_INDEX', 'JOB_COMPLETIONS', undefined],
] as const;

export function launchedBy(env: Environment): Launched {
  const number = (name: string | undefined): number | undefined => {
    const text = name === undefined ? undefined : env[name];
    return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
  };
  const found = LAUNCHERS.find(([, rank]) => number(rank) !== undefined);
  const [launcher, rank, size, local] = found ?? ['no launcher', undefined, 'WORLD_SIZE', undefined];
  return {
    launcher,
    ...given('rank', number(rank)),
    ...given('size', number(size) ?? number('WORLD_SIZE')),
    ...given('localRank', number(local)),
    ...given('host', env['MASTER_ADDR'] ?? env['SLURM_LAUNCH_NODE_IPADDR']),
    // torchrun itself listens there.
    ...given('port', add(number('MASTER_PORT'), env['TORCHELASTIC_USE_AGENT_STORE'] === 'True' ? 1 : 0)),
  };
}

const add = (port: number | undefined, more: number): number | undefined => (port === undefined ? undefined : port + more);

function given<N extends string, V>(name: N, value: V | undefined): { readonly [name in N]?: V } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [name in N]?: V };
}
