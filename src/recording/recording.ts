// Records what devices and this thread do, for a picture of it.
import { DeviceTimes } from '../protocol/protocol.gen.js';
import { badArgument, checkInteger, refuseSurplus, show } from '../core/base/arguments.js';
import { checkOptionNames } from '../core/base/option-names.js';
import { clearTimeout, performance, setTimeout } from '../core/base/timers.js';
import type { Device } from '../core/api/device.js';
import { type DeviceLike, onEnter, openDevices } from '../core/api/open-devices.js';
import type { DeviceCore } from '../core/device/device-core.js';
import { chromeTrace } from './chrome-trace.js';
import { devicesOf } from './devices-of.js';
import { type Explained, Explainer } from './explain.js';
import type { Explanation, Gap, GapOptions, RecordingSummary } from './explained.js';
import { DeviceRecorder } from './device-recorder.js';
import { perfettoTrace } from './perfetto.js';
import { HostSpans, LOOK_MS } from './host-spans.js';
import { timelinePage } from './page.js';
import type { RecordedOperation, RecordedSpan } from './recorded.js';
import type { RecordedDevice } from './recorded-streams.js';
import { summaryOf } from './summary.js';

/** Options of `recordTimeline`. */
export interface RecordingOptions {
  /** The most operations of each device, and the most spans of the thread, that are kept. The oldest go first. Default 200,000. */
  readonly maxEvents?: number;
  /**
   * Whether a GPU tells when each operation began and ended, by events in its stream. Default true: operations of a busy stream that take less
   * than 50 us share an event, so that streams are at most 5 % slower (`timedTogether`). 'each': every operation has its own, which takes 2 us.
   * false: only the times of the host are known. The CPU device always tells, at no cost.
   */
  readonly deviceTimes?: boolean | 'each';
  /**
   * Whether each operation of this thread has the place of its call (`at`), which explanations then name. Default false: it makes each call
   * 15 to 25 us longer.
   */
  readonly callSites?: boolean;
}

const MAX_EVENTS = 200_000;
/** The most threads that a multiprocessor of a GPU has at a time; some have fewer. */
const MOST_THREADS = 2048;
/** By the option `deviceTimes`. */
const TIMES: Readonly<Record<string, DeviceTimes>> = { true: DeviceTimes.SHARED, each: DeviceTimes.EACH, false: DeviceTimes.NONE };

/** A timeline that is being recorded, or was. Times are milliseconds of `performance.now()`. */
export class Recording {
  readonly startMs: number = performance.now();
  readonly #devices: Map<DeviceCore, DeviceRecorder> = new Map();
  readonly #options: Required<RecordingOptions>;
  readonly #host: HostSpans;
  #endMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped: Promise<this> | undefined;
  /** Kept when nothing is added any more. */
  #operations: readonly RecordedOperation[] | undefined;
  #explainer: Explainer | undefined;

  /** @internal */
  constructor(cores: readonly DeviceCore[] | undefined, options: Required<RecordingOptions>) {
    this.#options = options;
    this.#host = new HostSpans(options.maxEvents);
    try {
      for (const core of cores ?? openCores()) this.#add(core);
    } catch (error) {
      this.#end();
      throw error;
    }
    // Devices that open later are recorded, too.
    if (cores === undefined) onEnter.add(this.#onEnter);
    this.#look();
  }

  /** When it ended; now, if it has not. */
  get endMs(): number {
    return this.#endMs ?? performance.now();
  }

  /** Every operation, of all threads that share the devices, in the order in which they were submitted. */
  get operations(): readonly RecordedOperation[] {
    if (this.#operations !== undefined) return this.#operations;
    // Of a recording that goes on, what the devices have told up to now.
    if (this.#endMs === undefined) for (const recorder of this.#devices.values()) recorder.read();
    const all = [...this.#devices.values()].flatMap((device) => device.operations());
    const timeOf = ({ submittedMs = 0, issuedMs = 0 }: RecordedOperation): number => submittedMs || issuedMs;
    const sorted = all.toSorted((a, b) => timeOf(a) - timeOf(b) || a.ticket - b.ticket);
    if (this.#endMs !== undefined) this.#operations = sorted;
    return sorted;
  }

  /** What this thread did, in the order of the ends. */
  get spans(): readonly RecordedSpan[] {
    return this.#host.spans();
  }

  /** Operations and spans that are missing, because there were more than `maxEvents`. */
  get dropped(): number {
    return [...this.#devices.values()].reduce((sum, { dropped }) => sum + dropped, this.#host.dropped);
  }

  /** Ends the recording, and resolves to it when the devices have told of everything that has finished. Does not wait for pending operations. */
  stop(): Promise<this> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  /** Ends the recording at once: without what the devices have not told yet. */
  [Symbol.dispose](): void {
    if (this.#endMs === undefined) this.#end();
  }

  /** The timeline in the JSON format of chrome://tracing, which Perfetto reads, too: times in microseconds from the start. */
  toChromeTrace(): string {
    return chromeTrace(this);
  }

  /**
   * The timeline in Perfetto's own format (a file `.pftrace`), times in nanoseconds from the earliest one on: beside what the Chrome trace has,
   * a flow from each submit to its operation, and counters of pending operations, bytes in flight and operations per second.
   */
  toPerfetto(): Uint8Array {
    return perfettoTrace(this);
  }

  /**
   * The timeline as a page: one file of HTML that loads nothing else, to look at it in a browser, to keep it or to send it. Beside the rows it
   * has what `gaps` and `summary` say, of the 2000 longest gaps.
   */
  toHtml(): string {
    return timelinePage(this);
  }

  /**
   * Why two operations of the recording did not run side by side: what held up the later one since the earlier one began, the most expensive
   * reason first. Empty if they did. Of an operation that has not begun: why, up to now. Throws ArgumentError for operations that the recording
   * does not have. Nsight Systems shows dependencies, and its expert system some of the reasons.
   * As a text, a line for each reason.
   * @example console.log(String(recording.explain(a, b)));
   */
  explain(a: Explained, b: Explained): readonly Explanation[] {
    return this.#explain().explain(a, b);
  }

  /**
   * The times in which a stream had nothing on the device before an operation that it was given later, in the order of their beginnings, and
   * why. A stream without times of the device has none. Holistic Trace Analysis: `get_idle_time_breakdown`. Throws ArgumentError for wrong options.
   */
  gaps(opts?: GapOptions): readonly Gap[] {
    return this.#explain().gaps(opts);
  }

  /**
   * The five reasons that cost most, with milliseconds, share of the recording and number of gaps, and how busy devices and streams were.
   * @example console.log(String(recording.summary()));
   */
  summary(): RecordingSummary {
    const explainer = this.#explain();
    return summaryOf(explainer.recording, explainer);
  }

  #explain(): Explainer {
    if (this.#explainer !== undefined) return this.#explainer;
    const { startMs, endMs, operations, spans } = this;
    const explainer = new Explainer({ startMs, endMs, operations, spans, devices: this.#deviceFacts() });
    if (this.#endMs !== undefined) this.#explainer = explainer;
    return explainer;
  }

  #deviceFacts(): readonly RecordedDevice[] {
    return [...this.#devices.keys()].map(({ name, info, channel: { backend } }) => {
      const isGpu = backend === 'cuda';
      const hasTimes = !isGpu || this.#options.deviceTimes !== false;
      return { name, hasTimes, isGpu, threads: info.multiprocessors * MOST_THREADS };
    });
  }

  #add(core: DeviceCore): void {
    const { maxEvents, deviceTimes, callSites } = this.#options;
    const wish = { maxEvents, times: TIMES[String(deviceTimes)] as DeviceTimes, callSites };
    this.#devices.set(core, new DeviceRecorder(core, wish, (span) => this.#host.add(span)));
  }

  /** Several Devices may have one core. A device that another recording has is left to it. */
  readonly #onEnter = ({ core }: Device): void => {
    if (this.#devices.has(core)) return;
    try {
      this.#add(core);
    } catch {
      // It is not recorded here.
    }
  };

  #look(): void {
    this.#host.look();
    for (const recorder of this.#devices.values()) recorder.read();
    this.#timer = setTimeout(() => this.#look(), LOOK_MS).unref();
  }

  async #stop(): Promise<this> {
    if (this.#endMs !== undefined) return this;
    await Promise.all([...this.#devices.values()].map((recorder) => recorder.ending()));
    if (this.#endMs === undefined) this.#end();
    return this;
  }

  #end(): void {
    this.#endMs = performance.now();
    onEnter.delete(this.#onEnter);
    clearTimeout(this.#timer);
    for (const recorder of this.#devices.values()) {
      recorder.read();
      recorder.end();
    }
    this.#host.end();
  }
}

function openCores(): readonly DeviceCore[] {
  return openDevices()
    .filter(({ state }) => state === 'open')
    .map(({ core }) => core);
}

/**
 * Records a timeline of the devices, by default of all that are open or will be, until `stop`: when each operation was submitted, issued,
 * begun and ended, what it waited for, and what this thread and the lanes of its pipelines did. Nsight Systems, `torch.profiler.profile`,
 * `CUDA.@profile`. A device may have several recordings. Throws ArgumentError for what is no device and for wrong options, and StateError for a
 * device that is not open.
 * @example const recording = recordTimeline(); await work(); await recording.stop(); writeFileSync('run.json', recording.toChromeTrace());
 */
export function recordTimeline(devices?: DeviceLike | readonly DeviceLike[], opts: RecordingOptions = {}): Recording {
  if (arguments.length > 2) refuseSurplus('recordTimeline', arguments, 2);
  checkOptionNames(opts, ['maxEvents', 'deviceTimes', 'callSites']);
  const { maxEvents = MAX_EVENTS, deviceTimes = true, callSites = false } = opts;
  checkInteger('maxEvents', maxEvents, 1, 2 ** 24);
  if (typeof deviceTimes !== 'boolean' && deviceTimes !== 'each') {
    const message = `The option deviceTimes (${show(deviceTimes)}) is neither true nor false nor 'each'.`;
    throw badArgument('deviceTimes', deviceTimes, message);
  }
  const cores = devicesOf('recordTimeline', devices)?.map(({ core }) => core);
  return new Recording(cores && [...new Set(cores)], { maxEvents, deviceTimes, callSites });
}
