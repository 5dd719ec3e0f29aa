// `millrace cache`: what it contains, and `millrace cache clean`.
import { UnavailableError } from '../core/base/errors.js';
import { builds } from './builds.js';

const HOURS: Readonly<Record<string, number>> = { h: 1, d: 24, w: 168 };

export interface CacheOptions {
  readonly older?: string;
  readonly json?: boolean;
}

export async function cache(action: string | undefined, { older, json }: CacheOptions, print: (line: string) => void): Promise<number> {
  if (action !== undefined && action !== 'clean') throw misused(`The action (${action}) of cache is not 'clean'.`);
  const { cacheContents, cleanCache } = await builds();
  if (action === 'clean') {
    const { count, bytes } = await cleanCache(Date.now() - (older === undefined ? -1 : hoursOf(older) * 3_600_000));
    print(json === true ? JSON.stringify({ count, bytes }) : `${count} files removed, ${mebibytes(bytes)}.`);
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
    print(`${folder}: ${files.length} files, ${mebibytes(bytes)}.`);
    print(`Used last: ${dayOf(files[0]!.usedMs)} to ${dayOf(files.at(-1)!.usedMs)}.`);
  }
  return 0;
}

function hoursOf(age: string): number {
  const [, count, unit] = /^(\d+)([hdw])$/.exec(age) ?? [];
  if (unit === undefined) throw misused(`The age (${age}) is none such as 12h, 30d or 4w.`);
  return Number(count) * HOURS[unit]!;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function misused(message: string): Error {
  return new UnavailableError('ERR_MILLRACE_ARGUMENT', message, []);
}
