// The token by which other threads of the process open the same device (`device.share`). It is plain data, so it can be part of any
// message.
import { badArgument, show } from './arguments.js';
import { sealOf } from './seal.js';

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
  /** @internal */
  readonly seal: string;
}

/** The token of these fields. */
export function deviceToken(fields: Omit<DeviceToken, 'type' | 'seal'>): DeviceToken {
  return { type: 'millrace.device', ...fields, seal: sealOfDevice(fields) };
}

function sealOfDevice({ device, address, ordering }: Omit<DeviceToken, 'type' | 'seal'>): string {
  return sealOf([device, address.process, address.thread, address.channel, address.key, ordering]);
}

/** Throws ArgumentError for what `share` did not give, and for what it gave in another process. */
export function checkDeviceToken(value: unknown): DeviceToken {
  const token = value as DeviceToken | null | undefined;
  const address = token?.address;
  const numbers: readonly unknown[] = [address?.process, address?.thread, address?.channel];
  const names: readonly unknown[] = [address?.key, token?.device, token?.ordering];
  const isWhole = numbers.every((one) => typeof one === 'number') && names.every((one) => typeof one === 'string');
  if (token?.type !== 'millrace.device' || address === undefined || !isWhole) {
    const hint =
      (token as { readonly type?: unknown } | null | undefined)?.type === 'millrace.array' ? ': device.adopt takes tokens of arrays' : '';
    throw badArgument('token', value, `The token (${show(value)}) is not one that device.share() gave${hint}.`);
  }
  if (token.seal !== sealOfDevice(token)) {
    const message = `The token of device ${show(token.device)} was changed: pass what device.share() gave as it is.`;
    throw badArgument('token', value, message);
  }
  if (address.process !== process.pid) {
    const message = `The token of device ${token.device} was made in process ${address.process}; this is process ${process.pid}.`;
    throw badArgument('token', value, `${message} Threads share devices, processes share arrays by ipcHandle().`);
  }
  return token;
}
