// `millrace cache`: what it contains, and `millrace cache clean`.
import { ArgumentError } from '../core/base/errors.js';
import { didYouMean } from '../core/base/nearest-name.js';
import { bytesText } from '../workers/byte-units.js';
import { builds } from './builds.js';

const HOUR_MS = 3_600_000;
const HOURS: Readonly<Record<string, number>> = { h: 1, d: 24, w: 168 };
/** The largest unit first. */
const AGES: readonly (readonly [unit: string, ms: number])[] = [
  ['day', 24 * HOUR_MS],
  ['hour', HOUR_MS],
  ['minute', 60_000],
];

export interface CacheOptions {
  readonly older?: string | undefined;
  readonly json?: boolean;
}

/** Throws ArgumentError for what it does not understand, and then removes nothing. */
export async function cache(action: string | undefined, { older, json }: CacheOptions, print: (line: string) => void): Promise<number> {
  if (action !== undefined && action !== 'clean')
    throw misused('action', action, `cache has no action '${action}'${didYouMean(action, ['clean'])}. Its only action is clean.`);
  if (action === undefined && older !== undefined)
    throw misused('older', older, `--older needs the action clean: npx millrace cache clean --older ${older}`);
  const usedBeforeMs = older === undefined ? Number.POSITIVE_INFINITY : Date.now() - hoursOf(older) * HOUR_MS;
  const { cacheContents, cleanCache } = await builds();
  if (action === 'clean') {
    const { count, bytes } = await cleanCache(usedBeforeMs);
    print(json === true ? JSON.stringify({ count, bytes }) : `${counted(count, 'file')} removed, ${bytesText(bytes)}.`);
    return 0;
  }
  const contents = await cacheContents();
  if (json === true) {
    print(JSON.stringify(contents, null, 2));
    return 0;
  }
  const { folder, reason, files, bytes } = contents;
  if (folder === undefined) print('Built kernels are not kept, because of MILLRACE_CACHE=off.');
  else if (reason !== undefined) print(`${folder} is not used: ${reason}`);
  else if (files.length === 0) print(`${folder} is empty.`);
  else {
    const [oldest, newest] = [files[0]!, files.at(-1)!].map(({ usedMs }) => agoOf(Date.now() - usedMs));
    print(`${folder}: ${counted(files.length, 'file')}, ${bytesText(bytes)}.`);
    print(`Last used ${oldest === newest ? newest : `${oldest} (the oldest) to ${newest}`}.`);
  }
  return 0;
}

function hoursOf(age: string): number {
  const [, count, unit] = /^(\d+)([hdw])$/.exec(age) ?? [];
  if (unit === undefined) throw misused('older', age, `The age (${age}) is none such as 12h, 30d or 4w.`);
  return Number(count) * HOURS[unit]!;
}

/** In whole units, of which there is at least one. */
function agoOf(ms: number): string {
  const [unit, size] = AGES.find(([, of]) => ms >= of) ?? [];
  return size === undefined ? 'less than a minute ago' : `${counted(Math.floor(ms / size), unit!)} ago`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

function misused(argument: string, value: string, message: string): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_ARGUMENT', message, { argument, value });
}
