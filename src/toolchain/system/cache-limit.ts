// How many bytes the folder of built kernels may have: MILLRACE_CACHE_LIMIT.
const DEFAULT_BYTES: number = 2 ** 30;
const UNITS: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** In bytes. The default for a bad value. */
export function cacheLimit(env: NodeJS.ProcessEnv): number {
  return read(env) ?? DEFAULT_BYTES;
}

/** Called by the thread that opens devices, not by the builders, of which each device has one. */
export function warnOfBadCacheLimit(env: NodeJS.ProcessEnv): void {
  if (read(env) !== undefined) return;
  const message =
    `MILLRACE_CACHE_LIMIT (${env['MILLRACE_CACHE_LIMIT']}) is not a number of bytes, such as 536870912, 512M or 2G. ` +
    'The limit is 1 GiB.';
  process.emitWarning(message, { type: 'MillraceWarning', code: 'ERR_MILLRACE_ARGUMENT' });
}

/** Undefined for a bad value. */
function read(env: NodeJS.ProcessEnv): number | undefined {
  const text = env['MILLRACE_CACHE_LIMIT']?.trim();
  if (!text) return DEFAULT_BYTES;
  const [, count, unit] = /^(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?$/i.exec(text) ?? [];
  return unit === undefined ? undefined : Number(count) * UNITS[unit.toUpperCase()]!;
}
