// Makes the error that a promise rejects with from the record of a failure.
// Thread: owner.
import { driverErrorIn } from '../base/driver-errors.js';
import { Status } from '../../protocol/protocol.gen.js';
import type { FailureRecord } from '../../protocol/reports.js';
import {
  ASSERTION_PARAMETER,
  COLLECTIVE_FAULTS,
  COLLECTIVE_PARAMETER,
  type FaultPlaces,
  type FaultSource,
  GUARD_FAULT,
  KERNEL_FAULT_PARAMETER,
  KERNEL_FAULTS,
  LAUNCH_PARAMETER,
  NCCL_CODES,
  NO_PARAMETER,
  RACE_FAULT,
  REFUSED_ARGUMENT,
  REFUSED_LAUNCH,
  SHUFFLE_FAULT,
} from '../channel/build-spec.js';
import { raceError } from './race-errors.js';
import { shuffleError } from './shuffle-errors.js';
import {
  BoundsError,
  CollectiveError,
  DeviceLostError,
  InternalError,
  LaunchError,
  MillraceError,
  OutOfMemoryError,
  StateError,
  UnsupportedError,
  UpstreamError,
} from '../base/errors.js';
import type { OperationInfo } from '../base/snapshots.js';

/** What an error needs to know of a kernel. */
export interface KernelFacts {
  readonly name: string;
  /** Parameter names, in order. */
  readonly parameters: readonly string[];
  /** The parameter, or the field of one, that is at this byte of an argument of the compiled kernel. */
  parameterOf(argument: number, byte: number): string | undefined;
  /** Arrays that it declares. */
  readonly arrays: readonly string[];
  /** The conditions that it asserts. */
  readonly assertions: readonly string[];
  /** Settles when the build does. */
  readonly built: Promise<unknown>;
  /** As Channel.locate. */
  locate(places: FaultPlaces): Promise<FaultSource>;
}

/** Where a failure happened, and the other errors that its message needs. */
export interface FailureScene {
  /** The device of the operation that failed. */
  readonly device: string;
  /** What the memory is used for, in sentences that follow others. `freeBytes`: what the device had free; 0 if unknown. */
  readonly memoryUse: (freeBytes: number) => string;
  /** The label of its stream. */
  readonly stream: string;
  readonly operation: OperationInfo | undefined;
  /** Of a graph's launch: the node that failed, in words. */
  readonly node: string | undefined;
  readonly kernel: KernelFacts | undefined;
  /** UPSTREAM: the error of the first failure. */
  readonly cause: () => MillraceError | Promise<MillraceError>;
  /** DEVICE_LOST: the other device that the record names, and its error. */
  readonly lost: () => { readonly device: string; readonly error: DeviceLostError } | undefined;
}

/** The note of what follows a wait that the driver refused. */
const UNKEPT_WAIT = 'the stream could not be made to wait';

/** The error of a failure; a promise if the error of a build is not known yet. */
export function describeFailure(record: FailureRecord, scene: FailureScene): MillraceError | Promise<MillraceError> {
  const { device, stream, operation, node, kernel } = scene;
  const facts = { device, stream, operation, driverStatus: record.driverStatus };
  const ofOperation = operation === undefined ? 'An operation' : `The ${operation.kind}${operation.label ? ` ${operation.label}` : ''}`;
  const what = node === undefined ? ofOperation : `N${node.slice(1)}`;
  const where = `on stream ${stream} of device ${device}`;
  /** Behind the name of a kernel: the launch's own label, and where it ran. */
  const named = operation?.label === undefined || operation.label === kernel?.name ? '' : `(${operation.label}) `;
  const whereOfKernel = node === undefined ? named + where : `in ${node} ${where}`;
  const note = record.note === '' ? '' : `: ${record.note}${driverErrorIn(record.driverStatus)}`;
  switch (record.status) {
    case Status.OUT_OF_MEMORY: {
      const { requestedBytes, freeBytes } = record;
      // Only allocations have numbers. The driver needs memory for other calls, too.
      const message =
        requestedBytes === 0
          ? `${what} ${where} was refused: the driver has no memory for it${note}.`
          : `The requested memory (${requestedBytes} bytes) exceeds the free memory of device ${device} (${freeBytes} bytes).`;
      return new OutOfMemoryError('ERR_MILLRACE_MEMORY', `${message}${scene.memoryUse(freeBytes)}`, requestedBytes, freeBytes, facts);
    }
    case Status.UPSTREAM: {
      const cause = scene.cause();
      const upstream = (first: MillraceError): MillraceError => {
        const relies = record.note === UNKEPT_WAIT ? 'follows a wait that failed' : 'reads memory that an earlier failure poisoned';
        const message = `${what} ${where} ${relies}: ${first.message.split('\n', 1)[0]}`;
        return new UpstreamError('ERR_MILLRACE_UPSTREAM', message, { ...facts, cause: first });
      };
      return cause instanceof Promise ? cause.then(upstream) : upstream(cause);
    }
    case Status.BOUNDS:
      return faultError(record, kernel, whereOfKernel, facts);
    case Status.DEVICE_LOST:
      if (record.fault !== undefined) {
        const message = `Device ${device} is lost: ${kernelFault(record.fault, kernel, whereOfKernel)}.`;
        return new DeviceLostError('ERR_MILLRACE_LOST', message, 'fault', facts);
      }
      return lostError(`${what} ${where}`, note, scene.lost(), facts);
    case Status.LAUNCH_FAILED:
      if (record.fault?.parameter === KERNEL_FAULT_PARAMETER && record.fault.dimension === RACE_FAULT)
        return raceError(record.fault, kernel, whereOfKernel, facts);
      if (record.fault?.parameter === KERNEL_FAULT_PARAMETER && record.fault.dimension === SHUFFLE_FAULT)
        return shuffleError(record.fault, kernel, whereOfKernel, facts);
      if (record.fault !== undefined) {
        const message = kernelFault(record.fault, kernel, whereOfKernel);
        return new LaunchError('ERR_MILLRACE_LAUNCH', `${message[0]!.toUpperCase()}${message.slice(1)}.`, facts);
      }
      if (record.requested > record.limit) {
        const of = `exceed the limit of kernel ${kernel?.name ?? 'unknown'} (${record.limit})`;
        return new LaunchError(
          'ERR_MILLRACE_LAUNCH',
          `${what} ${where} was refused: the ${record.note} (${record.requested}) ${of}.`,
          facts,
        );
      }
      return new LaunchError('ERR_MILLRACE_LAUNCH', `${what} ${where} was refused by the device${note}.`, facts);
    // The function ran on another thread, or its error is no longer kept.
    case Status.FUNCTION:
      return new MillraceError('ERR_MILLRACE_HOST', `${what} ${where} failed${note}.`, facts);
    case Status.UNSUPPORTED:
      return new UnsupportedError(
        'ERR_MILLRACE_UNSUPPORTED',
        `${what} ${where} needs a feature that the device does not have${note}.`,
        record.note,
        facts,
      );
    default:
      if (record.status === Status.STATE && record.kernel === 0) {
        return new StateError('ERR_MILLRACE_STATE', `${what} ${where} failed${note}.`, facts);
      }
      // What the driver refuses for reasons that this library does not know.
      if (record.driverStatus !== 0)
        return new LaunchError('ERR_MILLRACE_LAUNCH', `${what} ${where} was refused by the device${note}.`, facts);
      // Launches of a kernel that did not build fail with the error of the build, which may not have arrived yet.
      if (kernel !== undefined && record.kernel !== 0) {
        return kernel.built.then(
          () =>
            new InternalError('ERR_MILLRACE_INTERNAL', `${what} ${where} failed although kernel ${kernel.name} was built${note}.`, facts),
          (error: unknown) => (error instanceof MillraceError ? error : new InternalError('ERR_MILLRACE_INTERNAL', String(error), facts)),
        );
      }
      return new InternalError('ERR_MILLRACE_INTERNAL', `${what} ${where} failed (status ${record.status})${note}.`, facts);
  }
}

/** The stream waited for another device that is gone, or used its memory. (The loss of its own device rejects promises elsewhere.) */
function lostError(what: string, note: string, lost: ReturnType<FailureScene['lost']>, facts: object): DeviceLostError {
  if (lost === undefined) return new DeviceLostError('ERR_MILLRACE_LOST', `${what} failed${note}.`, 'closed', facts);
  const { device, error } = lost;
  const message = `${what} waits for device ${device} or uses its memory: ${error.message}`;
  return new DeviceLostError('ERR_MILLRACE_LOST', message, error.reason, { ...facts, device, cause: error });
}

/** Why a kernel could not go on. */
function kernelFault(fault: NonNullable<FailureRecord['fault']>, kernel: KernelFacts | undefined, where: string): string {
  const isAddress = KERNEL_FAULTS[fault.dimension]?.includes('0x') ?? false;
  const detail = isAddress ? BigInt.asUintN(64, BigInt(fault.index)).toString(16) : String(fault.index);
  const what =
    fault.dimension === GUARD_FAULT
      ? accessOutside(fault, kernel)
      : (KERNEL_FAULTS[fault.dimension] ?? KERNEL_FAULTS[0]!).replace('#', detail);
  if (fault.limit === 0) return `kernel ${kernel?.name ?? 'unknown'} ${where} ${what}`;
  const [x, y, z] = fault.block;
  const block =
    fault.limit > 1 ? `one of the blocks (${x}, ${y}, ${z}) to (${x + fault.limit - 1}, ${y}, ${z})` : `block (${x}, ${y}, ${z})`;
  return `kernel ${kernel?.name ?? 'unknown'} ${where} ${what} in ${block}`;
}

/** Where no block is known (limit 0), changed bytes beside the array were found after its blocks had run. */
function accessOutside(fault: NonNullable<FailureRecord['fault']>, kernel: KernelFacts | undefined): string {
  const [argument, low, high] = fault.thread;
  const byteLength = high * 2 ** 32 + low;
  const name = argument === NO_PARAMETER ? undefined : kernel?.parameterOf(argument, fault.places[0]);
  const array = name === undefined ? 'an array that is not an argument' : `array ${name}`;
  const [verb, end] = fault.limit === 0 ? ['wrote', ''] : ['accessed', ','];
  return `${verb} byte ${fault.index} of ${array}, which has ${byteLength} bytes${end}`;
}

/** What a checked kernel reported. */
function faultError(record: FailureRecord, kernel: KernelFacts | undefined, where: string, facts: object): MillraceError {
  const name = kernel?.name ?? 'unknown';
  const { fault } = record;
  if (fault === undefined) {
    return new LaunchError('ERR_MILLRACE_BOUNDS', `Kernel ${name} ${where} used an index outside an array.`, facts);
  }
  if (fault.parameter === COLLECTIVE_PARAMETER) {
    const { reason, text } = COLLECTIVE_FAULTS[fault.dimension] ?? COLLECTIVE_FAULTS[0]!;
    const code = fault.index === 0 ? '' : ` (${NCCL_CODES[fault.index] ?? `code ${fault.index}`})`;
    return new CollectiveError(
      `The ${name} ${where} did not end, because its communicator does not work any more: ${text}${code}.`,
      reason,
      facts,
    );
  }
  const thread = `in thread (${fault.thread.join(', ')}) of block (${fault.block.join(', ')})`;
  if (fault.parameter === ASSERTION_PARAMETER) {
    const condition = kernel?.assertions[fault.index] ?? `number ${fault.index}`;
    return new LaunchError('ERR_MILLRACE_ASSERT', `The assertion ${condition} of kernel ${name} ${where} failed ${thread}.`, facts);
  }
  if (fault.parameter === LAUNCH_PARAMETER) {
    const memory = REFUSED_ARGUMENT[fault.dimension - REFUSED_LAUNCH.length];
    const why =
      memory === undefined
        ? `the ${REFUSED_LAUNCH[fault.dimension] ?? 'launch'} (${fault.index}) exceed the limit of the device (${fault.limit})`
        : `argument ${fault.index} points into ${memory}, which the launched kernel cannot read: copy the values to an array or pass them by value`;
    return new LaunchError('ERR_MILLRACE_LAUNCH', `A launch from kernel ${name} ${where} was refused ${thread}: ${why}.`, facts);
  }
  const array = (kernel && [...kernel.parameters, ...kernel.arrays])?.[fault.parameter] ?? `parameter ${fault.parameter}`;
  const message =
    `Kernel ${name} ${where} used index ${fault.index} of dimension ${fault.dimension} of ${array}, ` +
    `outside its bounds (0 to ${fault.limit - 1}), ${thread}.`;
  return new BoundsError('ERR_MILLRACE_BOUNDS', message, { array, ...fault }, facts);
}

/** The cause of an error, when it is no longer known. */
export function forgottenCause(device: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_UPSTREAM', `An earlier operation on device ${device} failed.`);
}
