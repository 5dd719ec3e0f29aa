// A checked copy: its ends match, and nothing has been submitted.
import { ArgumentError } from '../base/errors.js';
import type { Elements, Region } from './memory-region.js';

/** An end of a copy: a region, or the bytes of an ordinary array. */
export type End = { readonly region: Region; readonly bytes?: undefined } | { readonly region?: undefined; readonly bytes: Uint8Array };

export interface CopyPlan extends Elements {
  readonly dst: End;
  readonly src: End;
  readonly label: string | undefined;
  /** The source's ArrayBuffer is transferred to the device's worker. */
  readonly isTransfer: boolean;
}

/** A bad end or range of a copy. */
export function badCopy(argument: string, value: unknown, message: string, limit?: unknown): ArgumentError {
  return new ArgumentError('ERR_MILLRACE_COPY', message, limit === undefined ? { argument, value } : { argument, value, limit });
}
