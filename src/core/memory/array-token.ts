// The token by which other threads of the process adopt an array of an open device (`array.share`). It is plain data, so it can be part of
// any message.
import { badArgument, entriesOf, show } from '../base/arguments.js';
import { sealOf } from '../base/seal.js';
import type { DType } from '../elements/dtype.js';

/** A place in a stream that another thread can wait for. */
export interface SharedPoint {
  /** The device's channel. */
  readonly channel: number;
  readonly stream: number;
  readonly ticket: number;
}

/** Names an array to other threads that have the same device open: `array.share()` gives it and `device.adopt` takes it. Plain data. */
export interface ArrayToken<D extends DType = DType> {
  /** Tells this token from others. */
  readonly type: 'millrace.array';
  /** The element type. */
  readonly dtype: D;
  /** Row-major: the last dimension is the fastest. */
  readonly shape: readonly number[];
  /** The id of its device, for example 'cuda:0'. */
  readonly device: string;
  /** @internal */
  readonly key: string;
  /** @internal Absent: the elements follow each other. */
  readonly strides: readonly number[] | undefined;
  /** @internal */
  readonly handle: number;
  /** @internal Where it starts in the memory. */
  readonly byteOffset: number;
  /** @internal Of the whole memory. */
  readonly storageBytes: number;
  /** @internal What the sharing thread had submitted that uses it. */
  readonly uses: readonly SharedPoint[];
  /** @internal */
  readonly seal: string;
}

/** The token of these fields. */
export function arrayToken<D extends DType>(fields: Omit<ArrayToken<D>, 'type' | 'seal'>): ArrayToken<D> {
  return { type: 'millrace.array', ...fields, seal: sealOfArray(fields) };
}

function sealOfArray({
  dtype,
  shape,
  device,
  key,
  strides,
  handle,
  byteOffset,
  storageBytes,
  uses,
}: Omit<ArrayToken, 'type' | 'seal'>): string {
  return sealOf([dtype, shape, device, key, strides ?? null, handle, byteOffset, storageBytes, uses]);
}

/** Throws ArgumentError for what `array.share` did not give. */
export function checkArrayToken(value: unknown): ArrayToken {
  const token = value as ArrayToken | null | undefined;
  if (
    token?.type !== 'millrace.array' ||
    [token.device, token.key, token.dtype].some((name) => typeof name !== 'string') ||
    !isWhole(token)
  ) {
    const hint =
      (token as { readonly type?: unknown } | null | undefined)?.type === 'millrace.device' ? ': openShared takes tokens of devices' : '';
    throw badArgument('token', value, `The token (${show(value)}) is not one that array.share() gave${hint}.`);
  }
  if (token.seal !== sealOfArray(token)) {
    const message = `The token of array ${show(token.dtype)}${show(token.shape)} was changed: pass what array.share() gave as it is.`;
    throw badArgument('token', value, message);
  }
  return token;
}

/** Tells a token from an object that only looks like one: the device trusts these numbers. */
function isWhole({ shape, strides, handle, byteOffset, storageBytes, uses }: ArrayToken): boolean {
  const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  return (
    Array.isArray(shape) &&
    entriesOf(shape).every(isCount) &&
    (strides === undefined ||
      (Array.isArray(strides) && strides.length === shape.length && entriesOf(strides).every(Number.isSafeInteger))) &&
    [handle, byteOffset, storageBytes].every(isCount) &&
    Array.isArray(uses) &&
    (entriesOf(uses) as (SharedPoint | null | undefined)[]).every(
      (use) => isCount(use?.channel) && isCount(use?.stream) && isCount(use?.ticket),
    )
  );
}
