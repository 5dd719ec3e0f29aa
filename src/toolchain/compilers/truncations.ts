// What g++ makes of numbers that become integers and come back, as its dump of an image says.
//
// Without traps, which vectors want, g++ 12 takes (float)(int)x for the truncation of x, and that of a rounded number for the
// number: -0 for -0.5, where there and back is 0. With traps it leaves both alone.
//
// Called by the compiler of the CPU device for texts of users; the package's own convert in ways that are proof against it.

/** Has g++ leave such conversions alone. */
export const EXACT_FLAG = '-ftrapping-math';

/** A function that no text can call. */
const TRUNCATION = /\.TRUNC \(/;
const ROUNDING =
  /\b(?:__builtin_(?:ia32_)?)?(?:floor|ceil|round|rint|nearbyint|trunc)(?:f|p[sd]\d*)? \(|\.(?:FLOOR|CEIL|ROUND|RINT|NEARBYINT) \(/;
const TO_INTEGER =
  /^\s*(\w+) = (?:\((?:vector\(\d+\) )?(?:(?:signed|unsigned|long|short|int|char) ?)+(?:\[\d+\])?\) |\.?(?:__builtin_)?[il]+(?:floor|ceil|round|rint)f? \()/gim;
const TO_FLOAT = /^\s*\w+ = \((?:vector\(\d+\) )?(?:float|double)\) (\w+);/gm;
const WIDER = /\bVEC_(?:UN)?PACK_\w*(?:FLOAT|FIX_TRUNC)/;

/** Whether an image built without traps has a truncation in the place of conversions, or may have a rounding there. */
export function hasTruncations(dump: string): 'certainly' | 'perhaps' | undefined {
  if (TRUNCATION.test(dump)) return 'certainly';
  return ROUNDING.test(dump) ? 'perhaps' : undefined;
}

/** Whether an image built with traps has a number that becomes an integer and comes back at once. */
export function hasRoundTrips(dump: string): boolean {
  if (WIDER.test(dump)) return true;
  const integers = new Set([...dump.matchAll(TO_INTEGER)].map(([, name]) => name));
  for (const [, name] of dump.matchAll(TO_FLOAT)) if (integers.has(name)) return true;
  return false;
}
