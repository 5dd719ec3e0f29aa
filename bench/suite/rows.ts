// The rows of the benchmarks: what each measures, and its goals by backend. Groups (bench/groups) measure them by their ids.
// More than 400 lines: one table.
import type { Goal } from './goals.js';
import { FRAME_SIZES, type FrameSize } from './lanes.js';

export interface Row {
  readonly id: string;
  readonly what: string;
  readonly unit: string;
  /** Whether more is better; less is, if it is left out. */
  readonly isRate?: boolean;
  readonly goals?: { readonly cpu?: readonly Goal[]; readonly cuda?: readonly Goal[] };
}

export interface RowGroup {
  readonly name: string;
  readonly title: string;
  readonly rows: readonly Row[];
}

const MIB = ['1', '256'] as const;
const both = (...goals: Goal[]): NonNullable<Row['goals']> => ({ cpu: goals, cuda: goals });
const cuda = (...goals: Goal[]): NonNullable<Row['goals']> => ({ cuda: goals });

const arrays: RowGroup = {
  name: 'arrays',
  title: 'Ordinary arrays',
  rows: [
    ...(['16', '64', '256'] as const).map((mib) => ({
      id: `up.first.${mib}`,
      what: `up, first copy of that size in a new process, ${mib} MiB`,
      unit: 'GB/s',
      isRate: true,
      goals: cuda({ least: 1, peer: 'CuPy' }),
    })),
    { id: 'up.again.256', what: 'up, the same array again, 256 MiB', unit: 'GB/s', isRate: true, goals: cuda({ least: 20 }) },
    { id: 'up.new.256', what: 'up, a new array each time, 256 MiB', unit: 'GB/s', isRate: true, goals: cuda({ least: 1, peer: 'CuPy' }) },
    { id: 'up.transfer.256', what: 'up with `transfer`, 256 MiB', unit: 'GB/s', isRate: true, goals: cuda({ least: 45 }) },
    { id: 'up.shared.256', what: 'up from a SharedArrayBuffer, 256 MiB', unit: 'GB/s', isRate: true },
    { id: 'up.held', what: 'event loop held by the copy of a new array, per 32 MiB', unit: 'ms', goals: cuda({ most: 1 }) },
    {
      id: 'down.new.256',
      what: 'read into a new array, 256 MiB',
      unit: 'GB/s',
      isRate: true,
      goals: cuda({ least: 20 }, { least: 1, peer: 'CuPy' }),
    },
    { id: 'down.into.256', what: 'read into the same array, 256 MiB', unit: 'GB/s', isRate: true },
  ],
};

const pinned: RowGroup = {
  name: 'pinned',
  title: 'Page-locked memory',
  rows: [
    ...MIB.flatMap((mib) =>
      (['up', 'down'] as const).map((direction) => ({
        id: `pinned.${direction}.${mib}`,
        what: `${direction}, ${mib} MiB, by the clock`,
        unit: 'GB/s',
        isRate: true,
        // Two percent are within the spread of either side.
        goals: cuda(mib === '1' ? { least: 0.98, peer: 'CuPy' } : { least: 55 }),
      })),
    ),
    ...MIB.flatMap((mib) =>
      (['up', 'down'] as const).map((direction): Row => {
        const row = { id: `pinned.events.${direction}.${mib}`, what: `${direction}, ${mib} MiB, by events`, unit: 'GB/s', isRate: true };
        return { ...row, goals: cuda(mib === '1' ? { least: 0.95, peer: 'CuPy' } : { least: 55.3 }) };
      }),
    ),
  ],
};

const launches: RowGroup = {
  name: 'launches',
  title: 'Launches',
  rows: [
    { id: 'burst.tracked', what: 'launch in a burst, three tracked arguments, calling thread', unit: 'us', goals: both({ most: 0.25 }) },
    { id: 'burst.explicit', what: 'the same on a stream with explicit ordering', unit: 'us' },
    { id: 'burst.empty', what: 'the same without arguments', unit: 'us' },
    { id: 'burst.order', what: 'tracked minus explicit, in pairs', unit: 'us', goals: both({ most: 0.1 }) },
    {
      id: 'sustained',
      what: 'sustained, per launch of an empty kernel',
      unit: 'us',
      goals: cuda({ most: 1.08, peer: 'C++ driver' }),
    },
  ],
};

const awaits: RowGroup = {
  name: 'awaits',
  title: 'Launch and await',
  rows: [
    {
      id: 'await.hot',
      what: 'launch and await, hot',
      unit: 'us',
      goals: {
        cpu: [{ most: 9 }, { most: 20, of: 'p99' }],
        cuda: [
          { most: 1.05, peer: 'C++ driver, spinning' },
          { most: 3, of: 'p99/p50' },
        ],
      },
    },
    { id: 'await.idle', what: 'launch and await after 2 ms idle', unit: 'us', goals: both({ most: 60 }) },
    { id: 'await.many', what: '10,000 events awaited at once, per event', unit: 'us', goals: both({ most: 1 }) },
    { id: 'loop.delay', what: 'delay of the event loop under full load', unit: 'ms', goals: both({ most: 2, of: 'p99' }) },
    { id: 'idle.cpu', what: 'processor time of an open, idle device', unit: '% of a core', goals: cuda({ most: 0.1 }) },
  ],
};

/** Of `openDevice`. */
export const SCHEDULES = ['auto', 'spin', 'yield', 'blocking'] as const;

const schedules: RowGroup = {
  name: 'schedules',
  title: 'What a device does when nothing is left to submit',
  rows: SCHEDULES.flatMap((schedule) => [
    { id: `schedule.hot.${schedule}`, what: `launch and await, hot, schedule '${schedule}'`, unit: 'us' },
    {
      id: `schedule.idle.${schedule}`,
      what: `launch and await after 2 ms idle, schedule '${schedule}'`,
      unit: 'us',
      ...(schedule === 'spin' && { goals: cuda({ most: 1.3, peer: 'C++ driver, spinning' }) }),
    },
    { id: `schedule.load.${schedule}`, what: `processor time of such launches, schedule '${schedule}'`, unit: '% of a core' },
  ]),
};

const starts: RowGroup = {
  name: 'starts',
  title: 'Start of a process',
  rows: [
    { id: 'start.import', what: '`import` to ready', unit: 'ms', goals: both({ most: 60 }) },
    { id: 'start.open', what: '`openDevice`', unit: 'ms' },
    {
      id: 'start.result',
      what: '`import` to the first result of a kernel in the cache',
      unit: 'ms',
      goals: cuda({ most: 0.5, peer: 'CuPy' }),
    },
    { id: 'start.process', what: 'start of the process to its first result', unit: 'ms' },
    { id: 'package.packed', what: 'size of the package, packed', unit: 'KiB' },
    { id: 'package.unpacked', what: 'size of the package, unpacked', unit: 'KiB' },
  ],
};

const queued: RowGroup = {
  name: 'queued',
  title: 'Queued operations and streams',
  rows: [
    { id: 'queued.memory', what: 'memory of a queued operation', unit: 'bytes', goals: both({ most: 128 }) },
    { id: 'queued.1', what: 'launch with 1 operation queued', unit: 'us' },
    { id: 'queued.1000', what: 'launch with 1,000 operations queued', unit: 'us', goals: both({ most: 1.1, peer: '1 queued' }) },
    { id: 'queued.1000000', what: 'launch with 1,000,000 operations queued', unit: 'us', goals: both({ most: 1.1, peer: '1 queued' }) },
    { id: 'streams.1', what: 'launches on 1 stream', unit: 'us' },
    ...(['10', '100', '1000'] as const).map((count) => ({
      id: `streams.${count}`,
      what: `launches on ${Number(count).toLocaleString('en')} streams in turn`,
      unit: 'us',
      goals: both({ most: 1.1, peer: '1 stream' }),
    })),
  ],
};

const graphs: RowGroup = {
  name: 'graphs',
  title: 'Graphs',
  rows: [
    ...(['1', '100', '1000'] as const).map((nodes) => ({
      id: `graph.launch.${nodes}`,
      what: `launch of a graph of ${Number(nodes).toLocaleString('en')} kernel${nodes === '1' ? '' : 's'}, calling thread`,
      unit: 'us',
      goals: both({ most: 1 }),
    })),
    ...(['100', '1000'] as const).map((nodes) => ({
      id: `graph.node.${nodes}`,
      what: `a node of a chain of ${Number(nodes).toLocaleString('en')} empty kernels`,
      unit: 'ns',
      goals: { cpu: [{ most: 300 }], cuda: [{ most: 1.02, peer: 'C++ driver' }] },
    })),
    { id: 'graph.diamond', what: 'a diamond of four kernels of 5 ms, two of them side by side', unit: 'ms' },
  ],
};

const bySize = (rows: (size: FrameSize, name: string) => Row[]): Row[] =>
  FRAME_SIZES.flatMap((size) => rows(size, size === '0.25' ? '256 KiB' : `${size} MiB`));

/** `id`: the streams and the size; `what`: the same in words. */
const sharesOf = (id: string, what: string): Row[] =>
  (['three', 'two'] as const).map((parts) => ({
    id: `streams.${parts}.${id}`,
    what: `${parts === 'three' ? 'up, kernel and down' : 'up and down'} of ${what}: share of the longest part`,
    unit: '',
    isRate: true,
    goals: cuda({ least: 0.98, peer: 'C++ driver' }),
  }));

const streams: RowGroup = {
  name: 'streams',
  title: 'Three streams, nothing awaited',
  rows: [
    ...bySize((size, name) => [
      ...(['explicit', 'tracked'] as const).flatMap((ordering) => sharesOf(`${ordering}.${size}`, `${name}, ${ordering}`)),
      {
        id: `streams.frame.${size}`,
        what: `up and down of ${name}, explicit: time of a frame`,
        unit: 'ms',
        goals: { cpu: [{ most: 1.05, peer: 'C++ threads' }] },
      },
    ]),
    ...sharesOf('32.tracked.4', '4 MiB on 32 streams, tracked'),
  ],
};

/** Operations on arrays: what each is called in the requests of peers, its sizes, and what it is. */
export const OPERATIONS: Readonly<Record<string, { readonly sizes: readonly number[]; readonly what: string }>> = {
  add: { sizes: [1e6, 1e8], what: 'sum of two arrays' },
  exp: { sizes: [1e6, 1e8], what: 'exponentials' },
  sum: { sizes: [1e6, 1e8], what: 'sum of all elements' },
  columns: { sizes: [1e6, 1e8], what: 'sums of the columns of 1,000 rows' },
  argmax: { sizes: [1e6], what: 'number of the largest element' },
  cumsum: { sizes: [1e6, 1e8], what: 'running sums' },
  sort: { sizes: [1e6, 1e8], what: 'sort' },
  argsort: { sizes: [1e6], what: 'order of a sort' },
  topk: { sizes: [1e6, 1e8], what: 'the 100 largest elements' },
  matmul: { sizes: [512, 1024, 4096], what: 'product of square matrices' },
  matmulHalf: { sizes: [512, 4096], what: 'product of square matrices of f16' },
  matmulBrain: { sizes: [512, 4096], what: 'product of square matrices of bf16' },
  matmulDouble: { sizes: [512, 4096], what: 'product of square matrices of f64' },
  fft: { sizes: [2 ** 20], what: 'transform of complex numbers' },
  fftRows: { sizes: [1e6], what: 'transforms of 1,000 rows of complex numbers' },
  fftPlane: { sizes: [2048], what: 'transform in two dimensions of a square of complex numbers' },
  rfft: { sizes: [1e6], what: 'transform of real numbers' },
};

/** Only GPUs measure other sizes. */
export const isShort = (size: number): boolean => size <= 2 ** 20 && size !== 4096;
/** How many results are awaited together, so that the way from the device to the event loop is a small part of the time of each. */
export const IN_A_ROW = 100;

const operations: RowGroup = {
  name: 'operations',
  title: 'Operations on arrays of f32',
  rows: [
    { id: 'operation.first', what: "a program's first 1,400 sums of two arrays of 1,000 elements, calling thread", unit: 'us' },
    { id: 'operation.call', what: 'the same after 10,000 more', unit: 'us', goals: cuda({ most: 0.5, peer: 'CuPy' }) },
    ...Object.entries(OPERATIONS).flatMap(([name, { sizes, what }]) =>
      sizes.flatMap((size) => [
        { id: `operation.${name}.${size}`, what: `${what}, ${size.toLocaleString('en')}`, unit: 'ms' },
        { id: `operation.row.${name}.${size}`, what: `the same, each of ${IN_A_ROW} in a row`, unit: 'ms' },
      ]),
    ),
  ],
};

/** Launches of `microseconds` on one stream, or on three in turn. */
export const RECORDED_LAUNCHES = [1, 3].flatMap((lanes) => [5, 20, 100].map((microseconds) => ({ lanes, microseconds })));

const recordings: RowGroup = {
  name: 'recordings',
  title: 'Recorded timelines',
  rows: RECORDED_LAUNCHES.flatMap(({ lanes, microseconds }) => {
    const what = `launches of ${microseconds} us on ${lanes === 1 ? 'one stream' : 'three streams'}`;
    const id = `${lanes}.${microseconds}`;
    // Shorter launches are as fast as the thread that gives them to the driver.
    const isLimited = microseconds >= 20;
    return [
      { id: `recording.off.${id}`, what: `${what}: time of a launch`, unit: 'us' },
      {
        id: `recording.host.${id}`,
        what: `${what}, recorded without times of the device: longer by`,
        unit: '%',
        ...(isLimited && { goals: cuda({ most: 3 }) }),
      },
      {
        id: `recording.device.${id}`,
        what: `${what}, recorded with times of the device: longer by`,
        unit: '%',
        ...(isLimited && { goals: both({ most: 8 }) }),
      },
    ];
  }),
};

const batches: RowGroup = {
  name: 'batches',
  title: 'Batches of copies',
  rows: (['4', '64', '1024'] as const).flatMap((kib) => [
    {
      id: `batch.done.${kib}`,
      what: `64 copies up of ${kib} KiB with \`copyBatch\`, awaited`,
      unit: 'us',
      goals: { cpu: [{ most: 1, peer: 'copy by copy' }], cuda: [{ most: 1.3, peer: 'C++ driver' }] },
    },
    { id: `batch.call.${kib}`, what: `the same, calling thread`, unit: 'us' },
  ]),
};

const frames: RowGroup = {
  name: 'frames',
  title: 'Frames in page-locked memory',
  rows: bySize((size, name) => [
    {
      id: `frames.hand.${size}`,
      what: `a frame of ${name}, loop by hand`,
      unit: 'ms',
      goals: { cpu: [{ most: 1.05, peer: 'C++ threads' }], cuda: [{ most: 1.03, peer: 'CuPy' }] },
    },
    {
      id: `frames.overlap.${size}`,
      what: `a frame of ${name}, \`overlap\` with the default depth`,
      unit: 'ms',
      goals: both({ most: 1.05, peer: 'by hand' }),
    },
    { id: `frames.graph.${size}`, what: `a frame of ${name}, loop by hand, each frame as a graph`, unit: 'ms' },
  ]),
};

const plain: RowGroup = {
  name: 'plain',
  title: 'Frames in ordinary arrays',
  rows: bySize((size, name) => [
    {
      id: `plain.${size}`,
      what: `a frame of ${name}, \`overlap\` with the default depth`,
      unit: 'ms',
      goals: cuda({ most: 0.5, peer: 'CuPy' }),
    },
    {
      id: `plain.delay.${size}`,
      what: `delay of the event loop meanwhile, ${name}`,
      unit: 'ms late',
      goals: cuda({ most: 2, of: 'p99' }),
    },
  ]),
};

const overlap: RowGroup = {
  name: 'overlap',
  title: 'Pipelines',
  rows: (['4', '3'] as const).map((lanes) => ({
    id: `overlap.${lanes}`,
    what: `three stages of 4 ms, 1,000 frames, ${lanes} lanes: busy share of the busiest stage`,
    unit: '',
    isRate: true,
    goals: both({ least: 0.95 }),
  })),
};

const devices: RowGroup = {
  name: 'devices',
  title: 'Two GPUs',
  rows: [
    {
      id: 'devices.frames',
      what: 'frames of 16 MiB in a loop by hand, on both GPUs at once: frames a second, divided by those of one GPU alone',
      unit: '',
      isRate: true,
      goals: cuda({ least: 0.98, peer: 'C++ driver' }),
    },
    { id: 'devices.two', what: 'the work of one GPU on two GPUs: speed-up', unit: '', isRate: true, goals: cuda({ least: 1.97 }) },
    ...(['16', '256'] as const).map((mib) => ({
      id: `devices.peer.${mib}`,
      what: `copy between two GPUs, ${mib} MiB`,
      unit: 'GB/s',
      isRate: true,
      goals: cuda({ least: 0.97, peer: 'C++ driver' }),
    })),
  ],
};

const kernels: RowGroup = {
  name: 'kernels',
  title: 'Kernels on the CPU device',
  rows: ['saxpy', 'matmul', 'reduction'].flatMap((name) =>
    ['TypeScript', 'CUDA C++'].map((form) => ({
      id: `kernel.${name}.${form === 'TypeScript' ? 'typescript' : 'cuda'}`,
      what: `${name}, ${form}`,
      unit: 'ms',
      goals: { cpu: [{ most: 1.11, peer: 'C++ with OpenMP' }] },
    })),
  ),
};

export const GROUPS: readonly RowGroup[] = [
  arrays,
  pinned,
  batches,
  launches,
  awaits,
  schedules,
  starts,
  queued,
  graphs,
  streams,
  frames,
  plain,
  overlap,
  devices,
  kernels,
  operations,
  recordings,
];

const byId: ReadonlyMap<string, Row> = new Map(GROUPS.flatMap(({ rows }) => rows).map((row) => [row.id, row]));

export function rowOf(id: string): Row {
  const row = byId.get(id);
  if (row === undefined) throw new Error(`There is no row ${id}.`);
  return row;
}
