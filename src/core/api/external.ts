// `stream.external`: checks the arrays and submits the record that stops the stream until the function has ended.
// Thread: owner.
import { types } from 'node:util';
import { Access, MAX_LAUNCH_ARGS } from '../../protocol/protocol.gen.js';
import { badArgument, belongsTo, show } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import { refuseApart } from '../base/apart.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { CaptureSession } from '../graphs/capture-session.js';
import { ArraySlot } from '../graphs/slots.js';
import { ExternalCall, type Place, type RawStream } from '../operations/external-function.js';
import { checkHoldTime } from '../operations/hold-function.js';
import { checkHost, type MakeOperation } from '../operations/host-function.js';
import type { Operation } from '../operations/operation.js';
import { CapturedExternal } from './captured-external.js';
import { PinnedArray } from './pinned.js';
import { StridedArray } from './strided-array.js';

/** Arrays that a function of `stream.external` uses, by the names of their addresses. */
export type ExternalArrays = Readonly<Record<string, StridedArray>>;

/** Options of `stream.external`. Bad values are an ArgumentError of the call. */
export interface ExternalOptions<R extends ExternalArrays = ExternalArrays, W extends ExternalArrays = ExternalArrays> {
  /** The arrays and views that the function's work reads, also in part. An array that it reads and writes is in both. */
  readonly reads?: R;
  /** Those that it writes. As an `output` of a kernel, an array that is not in `reads` gets all its elements written. */
  readonly writes?: W;
  /** The name of the operation in messages and in `device.inspect()`. */
  readonly label?: string;
  /**
   * If it aborts before the function is called, the function is not called and the operation fails with AbortError. If it aborts later,
   * `raw.signal` aborts too.
   */
  readonly signal?: AbortSignal;
  /** The longest time that the function's promise may stop the stream: milliseconds, at least 0 and less than 2^31. Default: 30,000. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 30_000;

interface ArrayUse {
  readonly name: string;
  readonly array: StridedArray;
  isRead: boolean;
  isWrite: boolean;
}

export function submitExternal(site: StreamContext, opts: ExternalOptions, fn: unknown, make: MakeOperation): Operation {
  checkOptionNames(opts, ['label', 'reads', 'signal', 'timeoutMs', 'writes'], 'options');
  const { reads, writes, label: name, signal: given, timeoutMs = DEFAULT_TIMEOUT_MS } = opts;
  const { label, signal } = checkHost(fn, { ...(name !== undefined && { label: name }), ...(given !== undefined && { signal: given }) }, [
    'label',
    'signal',
  ]);
  checkHoldTime(timeoutMs, 'an external function');
  const { core, timeline } = site;
  const uses = usesOf(core, reads, writes);
  refuseApart(core, 'A function with pointers and handles');
  const places = (): Place[] =>
    uses.map(({ name: argument, array: { storage, byteOffset } }) => {
      return { name: argument, handle: storage.handle, offset: storage.base + byteOffset };
    });
  const { encoder } = core;
  const submit = (encode: (count: number) => number): number => {
    const record = core.tracker.begin(site);
    for (const { name: argument, array, isRead, isWrite } of uses) record.add(array.storage, ...array.byteRange, isWrite, isRead, argument);
    return record.submit('external', label, () => {
      uses.forEach((use, at) => encoder.memoryArg(at, accessOf(use), use.array.storage.handle, use.array.storage.base));
      return encode(uses.length);
    });
  };
  const { callCaptures } = core.channel;
  if (timeline.recording instanceof CaptureSession && callCaptures !== undefined) {
    if (types.isAsyncFunction(fn)) {
      const what = `a graph cannot contain the external function${label === undefined ? '' : ` ${label}`}, which is async: it contains only what the function has called when it returns`;
      throw timeline.recording.refusal(timeline, 'unsupported-node', what);
    }
    timeline.recording.refuseInPartition(timeline, `an external function${label === undefined ? '' : ` (${label})`}`);
    const external = new CapturedExternal(site, callCaptures, fn as (raw: RawStream) => unknown, {
      label,
      signal,
      places: places(),
      storages: uses.map(({ array }) => array.storage),
    });
    external.keep();
    try {
      const ticket = submit((count) => encoder.launch(timeline.slot, external.kernel, count, 1, 1, 1, 1, 1, 1, 0, 0, 0));
      timeline.recording.addExternal(external);
      return make(ticket, label);
    } finally {
      external.drop();
    }
  }
  const ticket = submit((count) => encoder.external(timeline.slot, count));
  if (timeline.recording !== undefined) return make(ticket, label);
  const call = new ExternalCall(site, ticket, fn as (raw: RawStream) => unknown, {
    ...(signal && { signal }),
    timeoutMs,
    places: places(),
  });
  return call.begin((at) => make(at, label));
}

/** An array that is written and not read loses its contents; a view leaves the bytes around it as they are. */
function accessOf({ array, isRead, isWrite }: ArrayUse): number {
  if (!isWrite) return Access.READ;
  if (isRead) return Access.READ_WRITE;
  return array.isContiguous && array.byteLength === array.storage.byteLength ? Access.WRITE : Access.WRITE | Access.PART;
}

function usesOf(core: DeviceCore, reads: unknown, writes: unknown): readonly ArrayUse[] {
  const uses = new Map<string, ArrayUse>();
  for (const [option, arrays] of Object.entries({ reads, writes })) {
    if (arrays === undefined) continue;
    if (typeof arrays !== 'object' || arrays === null || Array.isArray(arrays) || arrays instanceof StridedArray) {
      const message = `The option ${option} (${show(arrays)}) is not an object with arrays by name. Example: ${option}: { x }, for raw.pointers.x.`;
      throw badArgument(option, arrays, message);
    }
    for (const [name, array] of Object.entries(arrays)) add(uses, option, name, checkArray(core, option, name, array));
  }
  if (uses.size > MAX_LAUNCH_ARGS) {
    const message = `The arrays of an external function (${uses.size}) exceed the limit (${MAX_LAUNCH_ARGS}).`;
    throw badArgument('reads', reads, message, MAX_LAUNCH_ARGS);
  }
  return [...uses.values()];
}

function add(uses: Map<string, ArrayUse>, option: string, name: string, array: StridedArray): void {
  const known = uses.get(name);
  if (known !== undefined && known.array !== array) {
    const message = `The name ${name} stands for one array in reads (${known.array.label}) and for another in writes (${array.label}): an address has one name.`;
    throw badArgument(option, array, message);
  }
  const use = known ?? { name, array, isRead: false, isWrite: false };
  if (option === 'reads') use.isRead = true;
  else use.isWrite = true;
  uses.set(name, use);
}

function checkArray(core: DeviceCore, option: string, name: string, array: unknown): StridedArray {
  const what = `Array ${name} of ${option}`;
  if (array instanceof ArraySlot) {
    const message = `${what} is a parameter of the graph, whose address each launch gives: use an array from outside of the capture.`;
    throw badArgument(option, array, message);
  }
  if (!(array instanceof StridedArray)) {
    const cure = array instanceof PinnedArray ? ': its data is host memory, which a device does not order; copy it to a device array' : '';
    throw badArgument(option, array, `${what} (${show(array)}) is not a device array${cure}.`);
  }
  if (array.isDisposed) throw array.disposedError();
  if (array.core !== core) throw badArgument(option, array, `${what} ${belongsTo(array.core.name, core.name)}.`, core.name);
  return array;
}
