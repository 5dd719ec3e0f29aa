// Serves what the devices of this thread do now, as a page that moves.
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { clearTimeout, performance, setTimeout } from '../core/base/timers.js';
import type { DeviceLike } from '../core/api/open-devices.js';
import { devicesOf } from './devices-of.js';
import { LiveDevices } from './live-program.js';
import { LiveHttp } from './live-server.js';
import { announce } from './served-programs.js';

/** Options of `serveTimeline`. */
export interface ServeOptions {
  /** A port of 127.0.0.1. Default 0: a free one. */
  readonly port?: number;
  /** How many seconds the page shows, 1 to 120. Default 10. */
  readonly seconds?: number;
  /** Whether the process stays alive until `close`. Default false. */
  readonly keepAlive?: boolean;
  /** Whether a GPU tells when each operation began and ended, as in `recordTimeline`. Without, its operations are not drawn. Default true. */
  readonly deviceTimes?: boolean;
}

const SECONDS = 10;
const MOST_SECONDS = 120;
const MOST_PORT = 65_535;
/** The devices are asked for what has ended. */
const READ_MS = 25;
/** Pages get news. */
const SEND_MS = 100;
/** Slices of a stream in one message, and in the first one. More are drawn as fewer. */
const MOST_SLICES = 100;
const MOST_FIRST_SLICES = 2000;

/** A live view that is being served. `await using` ends it. */
export class TimelineServer implements AsyncDisposable {
  /** The address of the page, with its token: who has it sees the labels of operations, so treat it as a password. */
  readonly url: string;
  readonly #http: LiveHttp;
  readonly #devices: LiveDevices;
  readonly #takeBack: () => void;
  readonly #keepAlive: boolean;
  #timer: NodeJS.Timeout | undefined;
  #sentMs = 0;
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(http: LiveHttp, devices: LiveDevices, keepAlive: boolean) {
    this.#http = http;
    this.#devices = devices;
    this.#keepAlive = keepAlive;
    this.url = http.url;
    this.#takeBack = announce({ pid: process.pid, url: this.url });
    this.#look();
  }

  /** Ends the pages, and resolves when nothing is served any more. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#takeBack();
    this.#devices.end();
    await this.#http.close();
  }

  #look(): void {
    this.#devices.read();
    const now = performance.now();
    if (now - this.#sentMs >= SEND_MS) {
      this.#sentMs = now;
      const rows = this.#devices.fresh(MOST_SLICES);
      if (this.#http.hasClients) this.#http.send({ ...this.#devices.now(), rows });
    }
    this.#timer = setTimeout(() => this.#look(), READ_MS);
    if (!this.#keepAlive) this.#timer.unref();
  }
}

/**
 * Serves a page on 127.0.0.1 that shows the last seconds of the devices, by default of all that this thread has open or will open: each
 * stream's operations as they run, what each waits for, load and memory. `npx millrace top` finds the program. The page needs the token in
 * the address that the result has as `url`. The server does not keep the process alive, and does not disturb `recordTimeline`. Tokio's
 * console, `node --inspect`. Throws ArgumentError for what is no device and for bad options, StateError for a device that is not open, and
 * rejects with UnavailableError if the port is taken.
 * @example await using server = await serveTimeline(); console.log(server.url);
 */
export async function serveTimeline(devices?: DeviceLike | readonly DeviceLike[], opts: ServeOptions = {}): Promise<TimelineServer> {
  if (arguments.length > 2) refuseSurplus('serveTimeline', arguments, 2);
  checkOptionNames(opts, ['port', 'seconds', 'keepAlive', 'deviceTimes']);
  const { port = 0, seconds = SECONDS, keepAlive = false, deviceTimes = true } = opts;
  checkInteger('port', port, 0, MOST_PORT);
  if (typeof seconds !== 'number' || !(seconds >= 1 && seconds <= MOST_SECONDS)) {
    throw badArgument('seconds', seconds, `The seconds (${show(seconds)}) are no number from 1 to ${MOST_SECONDS}.`, MOST_SECONDS);
  }
  for (const [name, value] of Object.entries({ keepAlive, deviceTimes }))
    if (typeof value !== 'boolean') throw badArgument(name, value, `The option ${name} (${show(value)}) is neither true nor false.`);
  const open = devicesOf('serveTimeline', devices);
  const live = new LiveDevices(open, seconds * 1000, deviceTimes);
  try {
    const told = {
      first: () => ({ ...live.now(), seconds, rows: live.all(MOST_FIRST_SLICES) }),
      snapshot: () => live.now(),
    };
    return new TimelineServer(await LiveHttp.listen(port, keepAlive, told), live, keepAlive);
  } catch (error) {
    live.end();
    throw error;
  }
}
