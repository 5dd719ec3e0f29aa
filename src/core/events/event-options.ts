// The options of events: timing, and use by other processes.
import { badArgument, show } from '../base/arguments.js';
import { ArgumentError, UnsupportedError } from '../base/errors.js';
import { checkOptionNames } from '../base/option-names.js';
import type { DeviceCore } from '../device/device-core.js';

/** Options of `device.createEvent` and `stream.record`: the flags of `cuEventCreate`. Both are false by default. */
export interface EventOptions {
  /** `elapsed` accepts the event: `cudaEventDefault` instead of `cudaEventDisableTiming`. Each record costs a device timestamp. */
  readonly timing?: boolean;
  /** Other processes can wait for the event by its `ipcHandle`: `CU_EVENT_INTERPROCESS`. CUDA only; excludes `timing`. */
  readonly interprocess?: boolean;
}

/** The options with defaults. Throws ArgumentError for bad values and unknown options, UnsupportedError if the device lacks such events. */
export function checkEventOptions(opts: EventOptions | undefined, core: DeviceCore): Required<EventOptions> {
  if (opts === undefined) return { timing: false, interprocess: false };
  checkOptionNames(opts, ['timing', 'interprocess']);
  const { timing = false, interprocess = false } = opts;
  for (const [name, value] of Object.entries({ timing, interprocess })) {
    if (typeof value !== 'boolean') throw badArgument(name, value, `The option ${name} (${show(value)}) is neither true nor false.`);
  }
  if (timing && interprocess) {
    throw new ArgumentError(
      'ERR_MILLRACE_EVENT_OPTIONS',
      'The options timing and interprocess cannot both be true: an event for other processes records no time.',
      {
        argument: 'timing',
        value: timing,
      },
    );
  }
  if (interprocess) checkInterprocess(core, 'events');
  return { timing, interprocess };
}

/** Throws UnsupportedError if the device cannot share objects with other processes. */
export function checkInterprocess(core: DeviceCore, what: string): void {
  if (core.channel.backend === 'cuda') return;
  const message = `Device ${core.name} does not support ${what} that other processes can open.`;
  throw new UnsupportedError('ERR_MILLRACE_IPC_UNSUPPORTED', message, 'interprocess', { device: core.name });
}
