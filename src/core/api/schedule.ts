// The option `schedule` of `openDevice`.
import { badArgument, show } from '../base/arguments.js';
import { Schedule as Code } from '../../protocol/protocol.gen.js';

const CODES: Readonly<Record<Schedule, Code>> = { auto: Code.AUTO, spin: Code.SPIN, yield: Code.YIELD, blocking: Code.BLOCKING };

/**
 * What the native thread of a device does when nothing is left to submit; the flags CU_CTX_SCHED_* of CUDA say it of a thread that waits.
 * 'auto' looks after the device for 50 us if the machine has 4 or more cores, and for 1 ms while somebody waits; then it naps for 5 ms, and
 * sleeps. 'spin' stays awake while somebody waits for the device, and for 5 ms after its last work: work that comes after a short rest is as
 * fast as without one, for at most one core. 'yield' does the same and offers the core to other threads all the time. 'blocking' sleeps at
 * once.
 */
export type Schedule = 'auto' | 'spin' | 'yield' | 'blocking';

export function checkSchedule(value: unknown): asserts value is Schedule {
  if (typeof value === 'string' && Object.hasOwn(CODES, value)) return;
  throw badArgument('schedule', value, `The schedule (${show(value)}) is none of 'auto', 'spin', 'yield' and 'blocking'.`);
}

export function scheduleCode(schedule: Schedule): Code {
  return CODES[schedule];
}
