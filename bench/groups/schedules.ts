// What each `schedule` of a device makes of launches that are awaited, hot and after a rest, and what it costs.
import { fileURLToPath } from 'node:url';
import type { Schedule } from 'millrace';
import { Peer } from '../suite/peer.js';
import { SCHEDULES } from '../suite/rows.js';
import { onGpu, type Run, us } from '../suite/run.js';

const PROGRAM = fileURLToPath(new URL('../programs/schedule.js', import.meta.url));
const ROUNDS = 4;
const HOT = 2000;
const RESTING = 60;
const REST_MS = 2;

export async function schedules(run: Run): Promise<void> {
  for (const schedule of SCHEDULES) {
    const program = await Peer.start(schedule, process.execPath, [PROGRAM, run.device.info.id, schedule]);
    if (typeof program === 'string') throw new Error(`The program with the schedule ${schedule} does not start: ${program}`);
    try {
      await measure(run, schedule, program);
    } finally {
      program.close();
    }
  }
}

async function measure(run: Run, schedule: Schedule, program: Peer): Promise<void> {
  const ask = async (request: string): Promise<readonly number[]> => {
    const seconds = await program.ask(request);
    if (typeof seconds === 'string') throw new Error(seconds);
    return seconds;
  };
  for (const [kind, count, idleMs] of [
    ['hot', run.times(HOT), 0],
    ['idle', run.times(RESTING), REST_MS],
  ] as const) {
    await run.compare(`schedule.${kind}.${schedule}`, {
      rounds: ROUNDS,
      unit: us,
      ours: () => ask(`blocking ${count} ${idleMs}`),
      peers: onGpu(run, {
        'C++ driver, spinning': { of: 'C++ driver', request: `round_trip ${count} ${idleMs}` },
        'C++ driver': `blocking ${count} ${idleMs}`,
        CuPy: `blocking ${count} ${idleMs}`,
        PyTorch: `blocking ${count} ${idleMs}`,
      }),
    });
  }
  await run.compare(`schedule.load.${schedule}`, {
    rounds: ROUNDS,
    unit: (share) => share * 100,
    ours: () => ask(`load ${run.times(4 * RESTING)} ${REST_MS}`),
  });
}
