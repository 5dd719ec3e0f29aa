// Makes the error of a launch in which two threads of a block raced for shared memory.
// Thread: owner.
import type { FailureRecord } from '../../protocol/reports.js';
import { EVERY_THREAD, type FaultPlaces, type FaultSource, type RacePlaces } from '../channel/build-spec.js';
import { LaunchError } from '../base/errors.js';

type Fault = NonNullable<FailureRecord['fault']>;

/** What the message needs to know of the kernel. */
export interface LocatedKernel {
  readonly name: string;
  locate(places: FaultPlaces): Promise<FaultSource>;
}

/** One access, from the bits of a report (native/cpu/grid_call.cpp). */
interface Access {
  readonly thread: string;
  readonly isWrite: boolean;
  readonly isAtomic: boolean;
}

const WRITE = 1;
const ATOMIC = 2;
const BITS_OF_ACCESS = 2;
const DYNAMIC = 16;
/** Of each axis in a thread's position. */
const POSITION_BITS = 10;
const POSITION_MASK: number = (1 << POSITION_BITS) - 1;

const UNKNOWN: FaultSource = { lines: [undefined, undefined], reason: 'the device has ended', variable: undefined };

/** The error of a race. The promise never rejects. */
export async function raceError(fault: Fault, kernel: LocatedKernel | undefined, where: string, facts: object): Promise<LaunchError> {
  const flags = fault.thread[2];
  const isDynamic = (flags & DYNAMIC) !== 0;
  const places: RacePlaces = { instructions: fault.places, byte: isDynamic ? undefined : fault.index };
  const source = await placesOf(kernel, places);
  const first = accessOf(fault.thread[0], flags);
  const second = accessOf(fault.thread[1], flags >> BITS_OF_ACCESS);
  const memory = isDynamic
    ? `byte ${fault.index} of its dynamic shared memory`
    : source.variable === undefined
      ? `byte ${fault.index} of its shared variables`
      : `byte ${source.variable.byte} of shared variable ${source.variable.name}`;
  const [firstLine, secondLine] = source.lines;
  const message =
    `Kernel ${kernel?.name ?? 'unknown'} ${where} has a race in block (${fault.block.join(', ')}), ${kindOf(first, second)}: ` +
    `${second.thread} ${verbOf(second, 's')} ${memory}${at(secondLine)}, which ${first.thread} ${verbOf(first, '')}${at(firstLine)}, ` +
    `and nothing orders the two.${reasonOf(source)}`;
  return new LaunchError('ERR_MILLRACE_RACE', message, facts);
}

/** Never rejects. */
export async function placesOf(kernel: LocatedKernel | undefined, places: FaultPlaces): Promise<FaultSource> {
  return (await kernel?.locate(places).catch(() => undefined)) ?? UNKNOWN;
}

/** A sentence about lines that are not known. */
export function reasonOf({ reason }: FaultSource): string {
  return reason === undefined ? '' : ` The lines are not known: ${reason}.`;
}

/** The thread at a position of a report (native/cpu/grid_call.cpp). */
export function threadAt(position: number): string {
  const axis = (n: number): number => (position >>> (n * POSITION_BITS)) & POSITION_MASK;
  return `thread (${axis(0)}, ${axis(1)}, ${axis(2)})`;
}

export function at(line: string | undefined): string {
  return line === undefined ? '' : ` at ${line}`;
}

function accessOf(position: number, flags: number): Access {
  return {
    thread: position === EVERY_THREAD ? 'every thread' : threadAt(position),
    isWrite: (flags & WRITE) !== 0,
    isAtomic: (flags & ATOMIC) !== 0,
  };
}

function kindOf(first: Access, second: Access): string {
  return `${second.isWrite ? 'write' : 'read'} after ${first.isWrite ? 'write' : 'read'}`;
}

/** In the present tense with `s`, else in the past tense. */
function verbOf({ isWrite, isAtomic }: Access, ending: 's' | ''): string {
  const word = ending === 's' ? (isWrite ? 'writes' : 'reads') : isWrite ? 'wrote' : 'read';
  return isAtomic ? `atomically ${word}` : word;
}
