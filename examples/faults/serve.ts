// The load: callers that each await one answer after another, and a fault now and then.
import { setTimeout as delay } from 'node:timers/promises';
import { FAULTS } from './faults.js';
import { type Answers, LastingDevice, scale } from './service.js';

const CALLERS = 4;
const LENGTH = 4096;

export interface Served extends Answers {
  readonly answered: number;
  readonly wrong: number;
  /** The longest time that a caller waited for an answer. */
  readonly longestMs: number;
  /** The faults that lost a device, by name. */
  readonly seen: readonly string[];
}

/** Serves until so many faults have happened, and every caller has its last answer. */
export async function serve(faults: number, everyMs: number): Promise<Served> {
  const device = new LastingDevice();
  const values = Float32Array.from({ length: LENGTH }, (_, at) => at);
  let [answered, wrong, longestMs] = [0, 0, 0];
  const over = new AbortController();
  const caller = async (number: number): Promise<void> => {
    for (let request = 0; !over.signal.aborted; request++) {
      const factor = 1 + ((number + request) % 7);
      const start = performance.now();
      const answer = await device.run((open) => scale(open, values, factor));
      longestMs = Math.max(longestMs, performance.now() - start);
      answered++;
      if (answer.length !== LENGTH || answer.some((value, at) => value !== at * factor)) wrong++;
    }
  };
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, number) => caller(number)));
  const seen: string[] = [];
  while (seen.length < faults) {
    await Promise.race([delay(everyMs), callers]);
    const [name, cause] = FAULTS[seen.length % FAULTS.length]!;
    await device.run(async (open) => {
      await cause(open);
      await open.lost;
    });
    seen.push(name);
  }
  over.abort();
  await callers;
  await device.close();
  return { ...device.answers, answered, wrong, longestMs, seen };
}
