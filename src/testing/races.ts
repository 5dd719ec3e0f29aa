// What a program computes must not depend on the order that the device chooses where the rules leave it a choice.
import { AssertionError } from 'node:assert';
import { isDeepStrictEqual } from 'node:util';
import { MOST_SEED } from '../core/api/check-options.js';
import type { Device } from '../core/api/device.js';
import { checkOrdering } from '../core/api/stream-options.js';
import { badArgument, checkInteger, show } from '../core/base/arguments.js';
import { StreamHazardError } from '../core/base/errors.js';
import { checkOptionNames } from '../core/base/option-names.js';
import type { Ordering } from '../core/device/stream-context.js';
import { openDevice } from '../open-device.js';

/** Options of `expectNoRaces`. */
export interface RaceOptions {
  /** How many schedules to try (default 30: the seeds 1 to 30), or their seeds: whole numbers from 0 to 2^32 - 1. */
  readonly seeds?: number | readonly number[];
  /** The `ordering` of the device's streams that do not set their own, as in `openDevice`. Default 'tracked'. */
  readonly ordering?: Ordering;
}

const USUAL_SEEDS = 30;
const MOST_SEEDS = 1_000_000;

/** How a run ended. */
type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * Runs a program many times, each time on a new CPU device that chooses another schedule (`openDevice('cpu', { seed })`), and resolves to the
 * value that `run` resolved to each time. Rejects with an AssertionError if
 *
 * - two uses of an array are not ordered, whether or not a schedule shows it: explicit streams are checked in a first run. The message
 *   has both operations and their lines;
 * - a schedule gives another value than the first one, by `util.isDeepStrictEqual`, or an error where another gives none. The message has the
 *   smallest such seed, both values, and the reason as far as it is known.
 *
 * `run` gets the device, which is closed afterwards. Its value must be plain data that does not change later: return a copy of what a
 * pinned array holds. No counterpart in CUDA; the idea is that of tokio's loom and of `compute-sanitizer`. The device must not be open in this
 * thread. Rejects with ArgumentError for a bad option.
 * @example await expectNoRaces(async (device) => pipeline(device, input), { seeds: 100 });
 */
export async function expectNoRaces<T>(run: (device: Device) => T | PromiseLike<T>, opts: RaceOptions = {}): Promise<T> {
  if (typeof run !== 'function') throw badArgument('run', run, `The program (${show(run)}) is not a function.`);
  checkOptionNames(opts, ['seeds', 'ordering']);
  const { ordering = 'tracked' } = opts;
  checkOrdering(ordering);
  const seeds = checkSeeds(opts.seeds);
  const checked = await outcomeOf(run, { ordering: ordering === 'explicit' ? 'checked' : ordering }, true);
  const hazard = 'error' in checked ? hazardIn(checked.error) : undefined;
  if (hazard !== undefined) throw failure(`Nothing orders two uses of an array. ${hazard.message}`, hazard);
  let first: Outcome | undefined;
  for (const seed of seeds) {
    const outcome = await outcomeOf(run, { ordering, seed }, false);
    first ??= outcome;
    if (isDeepStrictEqual(plain(outcome), plain(first))) continue;
    const wrong = 'error' in first && !('error' in outcome) ? seeds[0]! : seed;
    const message =
      `The order that the device chose changed the result: with seed ${seed} the program ${told(outcome)}, with seed ${seeds[0]} it ${told(first)}. ` +
      'No two operations conflict, so the host read memory, a result or a flag before the operation that writes it had finished (await its done), ' +
      `or the program counts on time. openDevice('cpu', { seed: ${wrong} }) tries schedules of this kind again.`;
    throw failure(message, 'error' in outcome ? outcome.error : 'error' in first ? first.error : undefined);
  }
  if (first === undefined || 'error' in first) throw first?.error;
  return first.value as T;
}

function checkSeeds(seeds: number | readonly number[] = USUAL_SEEDS): readonly number[] {
  if (typeof seeds === 'number') return Array.from({ length: checkInteger('seeds', seeds, 1, MOST_SEEDS) }, (_, n) => n + 1);
  if (!Array.isArray(seeds) || seeds.length === 0)
    throw badArgument('seeds', seeds, `The seeds (${show(seeds)}) are neither a number nor a list with at least one.`);
  return (seeds as readonly unknown[]).map((seed) => checkInteger('seeds', seed, 0, MOST_SEED)).toSorted((a, b) => a - b);
}

async function outcomeOf(
  run: (device: Device) => unknown,
  opts: { readonly ordering: Ordering; readonly seed?: number },
  checksExplicit: boolean,
): Promise<Outcome> {
  const device = await openDevice('cpu', opts);
  device.context.checksExplicit = checksExplicit;
  device.core.isChecked ||= checksExplicit;
  try {
    return { value: await run(device) };
  } catch (error) {
    return { error };
  } finally {
    await device.close();
  }
}

/** The hazard that an error is, or has among its causes. */
function hazardIn(error: unknown): StreamHazardError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof StreamHazardError) return at;
  return undefined;
}

/** What two runs have in common: an error differs by the numbers and places in its text. */
function plain(outcome: Outcome): unknown {
  if ('value' in outcome) return outcome;
  const { error } = outcome;
  return { error: error instanceof Error ? error.name : error };
}

function told(outcome: Outcome): string {
  if ('value' in outcome) return `gave ${show(outcome.value)}`;
  return `failed (${outcome.error instanceof Error ? `${outcome.error.name}: ${outcome.error.message.split('\n', 1)[0]}` : show(outcome.error)})`;
}

function failure(message: string, cause: unknown): AssertionError {
  const error = new AssertionError({ message, stackStartFn: expectNoRaces });
  if (cause !== undefined) error.cause = cause;
  return error;
}
