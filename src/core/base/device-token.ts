// What names an open device, and an array on it, to the other threads of the process. Plain data, so that any message carries it.
import { badArgument, show } from './arguments.js';

/** Where an open device is found in this process. */
export interface DeviceAddress {
  readonly process: number;
  /** The device's worker. */
  readonly thread: number;
  readonly channel: number;
  /** Only who was given it may open the device. */
  readonly key: string;
}

/** Names an open device to other threads of the process: `device.share()` gives it and `openShared` takes it. Plain data. */
export interface DeviceToken {
  /** Tells this token from others. */
  readonly type: 'millrace.device';
  /** The device's id, for example 'cuda:0'. */
  readonly device: string;
  /** @internal */
  readonly address: DeviceAddress;
  /** @internal */
  readonly ordering: string;
}

/** A place in a stream that another thread can wait for. */
export interface SharedPoint {
  /** The device's channel. */
  readonly channel: number;
  readonly stream: number;
  readonly ticket: number;
}

/** Names an array to other threads that have the same device open: `array.share()` gives it and `device.adopt` takes it. Plain data. */
export interface ArrayToken<D extends string = string> {
  /** Tells this token from others. */
  readonly type: 'millrace.array';
  /** The element type. */
  readonly dtype: D;
  /** Row-major: the last dimension is the fastest. */
  readonly shape: readonly number[];
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
}

/** Throws ArgumentError for what `share` did not give, and for what it gave in another process. */
export function checkDeviceToken(value: unknown): DeviceToken {
  const token = value as DeviceToken | null | undefined;
  const address = token?.address;
  if (token?.type !== 'millrace.device' || typeof address?.key !== 'string' || typeof address.channel !== 'number') {
    throw badArgument('token', value, `The token (${show(value)}) is not one that device.share() gave.`);
  }
  if (address.process !== process.pid) {
    const message = `The token of device ${token.device} was made in process ${address.process}; this is process ${process.pid}.`;
    throw badArgument('token', value, `${message} Threads share devices, processes share arrays by ipcHandle().`);
  }
  return token;
}

/** The same for tokens of arrays. */
export function checkArrayToken(value: unknown): ArrayToken {
  const token = value as ArrayToken | null | undefined;
  if (token?.type !== 'millrace.array' || typeof token.key !== 'string' || !isWhole(token)) {
    throw badArgument('token', value, `The token (${show(value)}) is not one that array.share() gave.`);
  }
  return token;
}

/** Tells a token from an object that only looks like one: the device trusts these numbers. */
function isWhole({ shape, strides, handle, byteOffset, storageBytes, uses }: ArrayToken): boolean {
  const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  return (
    Array.isArray(shape) &&
    (strides === undefined || (Array.isArray(strides) && strides.length === shape.length && strides.every(Number.isSafeInteger))) &&
    [handle, byteOffset, storageBytes].every(isCount) &&
    Array.isArray(uses) &&
    (uses as readonly (SharedPoint | null)[]).every((use) => isCount(use?.channel) && isCount(use?.stream) && isCount(use?.ticket))
  );
}
