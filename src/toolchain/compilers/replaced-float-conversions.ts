// Detects, in g++'s dump of an image, conversions of floats to integers and back that g++ has replaced wrongly.
//
// Without trapping math, which vectorisation needs, g++ 12 replaces (float)(int)x by a truncation of x, and for a rounded x by x itself:
// -0.5 then gives -0 instead of 0. With trapping math it keeps both conversions.
//
// The CPU device's compiler calls this for user sources. Emitted sources convert in ways that avoid the problem.
import { readFileSync } from 'node:fs';

/** Makes g++ keep such conversions. */
export const EXACT_FLAG = '-ftrapping-math';

/** An internal function that C++ source cannot call. */
const TRUNCATION = /\.TRUNC \(/;
const ROUNDING =
  /\b(?:__builtin_(?:ia32_)?)?(?:floor|ceil|round|rint|nearbyint|trunc)(?:f|p[sd]\d*)? \(|\.(?:FLOOR|CEIL|ROUND|RINT|NEARBYINT) \(/;
const TO_INTEGER =
  /^\s*(\w+) = (?:\((?:vector\(\d+\) )?(?:(?:signed|unsigned|long|short|int|char) ?)+(?:\[\d+\])?\) |\.?(?:__builtin_)?[il]+(?:floor|ceil|round|rint)f? \()/gim;
const TO_FLOAT = /^\s*\w+ = \((?:vector\(\d+\) )?(?:float|double)\) (\w+);/gm;
const WIDER = /\bVEC_(?:UN)?PACK_\w*(?:FLOAT|FIX_TRUNC)/;

/** Whether an image built without trapping math has a truncation in place of conversions, or may have a rounding there. */
export function hasTruncations(dump: string): 'certainly' | 'perhaps' | undefined {
  if (TRUNCATION.test(dump)) return 'certainly';
  return ROUNDING.test(dump) ? 'perhaps' : undefined;
}

/** Whether an image built with trapping math converts a float to an integer and directly back. */
export function hasRoundTrips(dump: string): boolean {
  if (WIDER.test(dump)) return true;
  const integers = new Set([...dump.matchAll(TO_INTEGER)].map(([, name]) => name));
  for (const [, name] of dump.matchAll(TO_FLOAT)) if (integers.has(name)) return true;
  return false;
}

/** The text of a dump; empty where there is none: some compilers that call themselves g++ write no dump. */
export function contentOf(dump: string): string {
  try {
    return readFileSync(dump, 'utf8');
  } catch {
    return '';
  }
}
