// Random programs whose kernels fail by chance: what their steps are, how they are made from a seed, and their text.
import {
  canFail,
  KERNEL_MODELS,
  KERNEL_NAMES,
  LENGTH,
  MODULUS,
  type KernelCall,
  type KernelName,
  type Part,
  WHOLE,
} from './failure-model.js';

/** Streams of each device: the first half tracked, the others explicit. */
export const STREAMS = 8;
export const TRACKED = 4;
/** Arrays of each device: those that graphs use, then temporaries, which are made anew. */
export const KEPT = 4;
export const ARRAYS = 6;
export const PINNED = 2;

/** A node of a graph. Arrays are those of its device; SLOT_X and SLOT_Y are slots. A bad launch fails if the launch of the graph is bad. */
export type GraphStep =
  | { readonly kind: 'launch'; readonly call: KernelCall }
  | { readonly kind: 'fill'; readonly to: number; readonly part: Part; readonly value: number }
  | { readonly kind: 'copy'; readonly to: number; readonly from: number; readonly part: Part; readonly fromPart: Part }
  /** An earlier graph of the device, without slots; its launches do not fail by their parameter. */
  | { readonly kind: 'embed'; readonly graph: number };
export interface GraphSpec {
  readonly device: number;
  readonly nodes: readonly GraphStep[];
}

/** Places of arrays in graphs that are slots. */
export const SLOT_X = 100;
export const SLOT_Y = 101;

export type Step =
  | { readonly kind: 'fill'; readonly on: number; readonly to: number; readonly part: Part; readonly value: number }
  | { readonly kind: 'upload'; readonly on: number; readonly to: number; readonly part: Part; readonly value: number }
  | { readonly kind: 'copy'; readonly on: number; readonly to: number; readonly part: Part; readonly from: number; readonly fromPart: Part }
  /** `isBrief`: on a stream of its own, which is closed at once. */
  | { readonly kind: 'launch'; readonly on: number; readonly call: KernelCall; readonly isBrief: boolean }
  /** One of two launches, by an element of an array. */
  | {
      readonly kind: 'if';
      readonly on: number;
      readonly flag: number;
      readonly at: number;
      readonly bodies: readonly [KernelCall, KernelCall];
    }
  | { readonly kind: 'flood'; readonly on: number; readonly count: number }
  | { readonly kind: 'graph'; readonly on: number; readonly graph: number; readonly x: number; readonly y: number; readonly isBad: boolean }
  | { readonly kind: 'read'; readonly from: number; readonly part: Part; readonly how: 'read' | 'item' | 'into' | 'chunks' }
  | { readonly kind: 'download'; readonly on: number; readonly from: number; readonly part: Part }
  | { readonly kind: 'pin'; readonly on: number; readonly pinned: number; readonly from: number; readonly part: Part }
  | { readonly kind: 'unpin'; readonly on: number; readonly pinned: number; readonly to: number; readonly part: Part }
  | { readonly kind: 'temporary'; readonly on: number; readonly to: number; readonly value: number; readonly clones: number | undefined }
  | { readonly kind: 'wait'; readonly on: number; readonly other: number; readonly isEvent: boolean }
  | { readonly kind: 'host' | 'hold' | 'record'; readonly on: number }
  | { readonly kind: 'await'; readonly back: number }
  | { readonly kind: 'stand'; readonly microseconds: number }
  | { readonly kind: 'turn' };

export interface FailingProgram {
  readonly devices: number;
  readonly graphs: readonly GraphSpec[];
  readonly steps: readonly Step[];
  /** Whether `done` of the operation of each step is read at once. */
  readonly asks: readonly boolean[];
  /** Every step ends before the next one begins, so that each failure is known at once. */
  readonly isCalm?: boolean;
}

/** Numbers from a seed: mulberry32. */
export function randomOf(seed: number): (limit: number) => number {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

const usesSlots = (node: GraphStep): boolean => node.kind === 'launch' && (node.call.x >= SLOT_X || node.call.y >= SLOT_X);

const KINDS: readonly (readonly [Step['kind'], number])[] = [
  ['launch', 34],
  ['graph', 8],
  ['if', 3],
  ['flood', 1],
  ['copy', 12],
  ['fill', 5],
  ['upload', 4],
  ['read', 10],
  ['download', 4],
  ['pin', 3],
  ['unpin', 3],
  ['temporary', 5],
  ['wait', 4],
  ['host', 2],
  ['hold', 2],
  ['record', 2],
  ['await', 3],
  ['turn', 2],
  ['stand', 3],
];
const SUM = KINDS.reduce((sum, [, weight]) => sum + weight, 0);

/** The program of a seed. `failing`: in how many of 100 launches something is wrong. */
export function programOf(seed: number, devices: number, failing: number): FailingProgram {
  const below = randomOf(seed);
  const chance = (percent: number): boolean => below(100) < percent;
  const part = (isDense: boolean): Part => {
    if (chance(60)) return WHOLE;
    const stride = isDense || chance(60) ? 1 : 2 + below(3);
    const start = below(LENGTH);
    return { start, stride, count: 1 + below(Math.ceil((LENGTH - start) / stride)) };
  };
  const like = (other: Part, isDense: boolean): Part => {
    const stride = isDense ? 1 : other.stride;
    const span = (other.count - 1) * stride + 1;
    return { start: below(LENGTH - span + 1), count: other.count, stride };
  };
  const shuffled = (limit: number): number[] => {
    const all = Array.from({ length: limit }, (_, n) => n);
    return Array.from({ length: limit }, () => all.splice(below(all.length), 1)[0]!);
  };
  const three = (limit: number): number[] => shuffled(limit).slice(0, 3);
  const call = (base: number, places: readonly number[]): KernelCall => {
    const name: KernelName = KERNEL_NAMES[below(KERNEL_NAMES.length)]!;
    const isBad = chance(failing) && canFail(name);
    const limit = isBad ? (chance(50) ? 1 : 900 + below(MODULUS - 900)) : MODULUS;
    const [x, y, z] = places.map((place) => (place >= SLOT_X ? place : base + place)) as [number, number, number];
    // An assertion names a thread, so there must be one for each step.
    return { name, x, y, z, part: name === 'claim' || chance(80) ? WHOLE : part(true), k: below(100), isBad, limit };
  };
  // A program on few streams and one on many are different things.
  const active = Array.from({ length: 1 + below(8) }, () => below(devices * STREAMS));
  const stream = (device?: number): number => {
    const one = active[below(active.length)]!;
    return device === undefined ? one : device * STREAMS + (one % STREAMS);
  };
  const array = (device?: number): number => (device ?? below(devices)) * ARRAYS + below(ARRAYS);
  const deviceOf = (on: number): number => Math.floor(on / STREAMS);
  const made: GraphSpec[] = [];
  const node = (device: number): GraphStep => {
    const base = device * ARRAYS;
    const embedded = below(8);
    if (made[embedded]?.device === device && made[embedded].nodes.every((one) => !usesSlots(one)))
      return { kind: 'embed', graph: embedded };
    const kind = below(10);
    const places = three(KEPT);
    // Some nodes use the slots.
    if (chance(25)) places[0] = SLOT_X;
    if (chance(25)) places[1] = SLOT_Y;
    if (kind < 7) {
      const one = call(base, places);
      const isBad = failing > 0 && canFail(one.name) && chance(40);
      const hasSlot = one.x === SLOT_X || one.y === SLOT_Y;
      return { kind: 'launch', call: { ...one, isBad, part: hasSlot ? WHOLE : one.part } };
    }
    const [from, to] = places.map((place) => (place >= SLOT_X ? place : base + place)) as [number, number];
    if (kind < 8) return { kind: 'fill', to: to < SLOT_X ? to : base + places[2]!, part: part(true), value: below(MODULUS) };
    // Copies of slots have a length of their own, so they are of the kept arrays.
    const p = part(true);
    const [direct, other] = [base + places[2]!, from < SLOT_X ? from : base + ((places[2]! + 1) % KEPT)];
    return { kind: 'copy', to: direct, from: other, part: p, fromPart: like(p, true) };
  };
  if (chance(50)) {
    for (let n = 1 + below(3); n > 0; n--) {
      const device = below(devices);
      made.push({ device, nodes: Array.from({ length: 1 + below(5) }, () => node(device)) });
    }
  }
  const graphs: readonly GraphSpec[] = made;
  const step = (): Step => {
    let pick = below(SUM);
    const kind = KINDS.find(([, weight]) => (pick -= weight) < 0)![0];
    const on = stream();
    const device = deviceOf(on);
    switch (kind) {
      case 'launch':
        return { kind, on, call: call(device * ARRAYS, three(ARRAYS)), isBrief: chance(4) };
      case 'if': {
        const [flag, ...places] = shuffled(ARRAYS) as [number, ...number[]];
        const base = device * ARRAYS;
        // A body may write what the other reads, and neither writes the flag.
        const bodies = [call(base, places.slice(0, 3)), call(base, places.slice(1, 4))] as const;
        return { kind, on, flag: base + flag, at: below(LENGTH), bodies };
      }
      case 'flood':
        return { kind, on, count: 50 + below(600) };
      case 'graph': {
        if (graphs.length === 0) return { kind: 'launch', on, call: call(device * ARRAYS, three(ARRAYS)), isBrief: false };
        const graph = below(graphs.length);
        const home = graphs[graph]!.device;
        const x = array(home);
        const y = home * ARRAYS + ((x + 1 + below(ARRAYS - 1)) % ARRAYS);
        return { kind, on: stream(home), graph, x, y, isBad: chance(failing) };
      }
      case 'copy': {
        // Strided copies are within one device.
        const to = array();
        const isFar = chance(50);
        const from = isFar ? array() : array(Math.floor(to / ARRAYS));
        const isDense = Math.floor(from / ARRAYS) !== Math.floor(to / ARRAYS);
        const p = part(isDense);
        const within = Math.floor(to / ARRAYS);
        const at = from === to ? within * ARRAYS + ((from + 1) % ARRAYS) : from;
        return { kind, on: isDense ? on : stream(within), to, part: p, from: at, fromPart: like(p, isDense || chance(50)) };
      }
      case 'fill':
        return { kind, on, to: array(device), part: part(false), value: below(MODULUS) };
      case 'upload':
        return { kind, on, to: array(device), part: part(true), value: below(MODULUS - LENGTH) };
      case 'read':
        return { kind, from: array(), part: part(false), how: (['read', 'read', 'item', 'into', 'chunks'] as const)[below(5)]! };
      case 'download':
        return { kind, on, from: array(device), part: part(true) };
      case 'pin':
        return { kind, on, pinned: below(PINNED), from: array(device), part: part(true) };
      case 'unpin':
        return { kind, on, pinned: below(PINNED), to: array(device), part: part(true) };
      case 'temporary': {
        const to = device * ARRAYS + KEPT + below(ARRAYS - KEPT);
        return { kind, on, to, value: below(MODULUS), clones: chance(50) ? device * ARRAYS + below(KEPT) : undefined };
      }
      case 'wait':
        return { kind, on, other: stream(), isEvent: chance(50) };
      case 'await':
        return { kind, back: below(4) };
      case 'stand':
        return { kind, microseconds: 1 << below(11) };
      case 'turn':
        return { kind };
      default:
        return { kind, on };
    }
  };
  const steps = Array.from({ length: 3 + below(20) }, step);
  const often = below(101);
  return { devices, graphs, steps, asks: steps.map(() => chance(often)) };
}

const nameOf = (array: number): string => (array === SLOT_X ? 'slot x' : array === SLOT_Y ? 'slot y' : `a${array}`);
const partText = ({ start, count, stride }: Part): string =>
  count === LENGTH ? '' : stride === 1 ? `[${start}, ${start + count}]` : `[${start}, ${start + (count - 1) * stride + 1}, ${stride}]`;
const streamText = (on: number): string => `s${on}${on % STREAMS < TRACKED ? '' : ' (explicit)'}`;

function callText({ name, x, y, z, part, k, isBad, limit }: KernelCall): string {
  const { reads, writes } = KERNEL_MODELS[name];
  const places = { x, y, z };
  const args = (['x', 'y', 'z'] as const)
    .filter((one) => reads.includes(one) || writes.includes(one as 'y'))
    .map((one) => `${one}: ${nameOf(places[one])}${partText(part)}`);
  if (name === 'gather') args.push(`limit: ${limit}`);
  return `launch(${name}, { ${args.join(', ')}, k: ${k} })${isBad && name !== 'gather' ? ' FAILS' : ''}`;
}

function nodeText(node: GraphStep): string {
  if (node.kind === 'launch') return callText(node.call);
  if (node.kind === 'embed') return `launch(graph ${node.graph})`;
  if (node.kind === 'fill') return `fill(${nameOf(node.to)}${partText(node.part)}, ${node.value})`;
  return `copy(${nameOf(node.to)}${partText(node.part)}, ${nameOf(node.from)}${partText(node.fromPart)})`;
}

function stepText(step: Step): string {
  switch (step.kind) {
    case 'launch':
      return `${step.isBrief ? 'a stream that is closed at once, beside ' : ''}${streamText(step.on)}.${callText(step.call)}`;
    case 'if':
      return `${streamText(step.on)}.captureIf(a${step.flag}[${step.at}], ${step.bodies.map(callText).join(', ')})`;
    case 'flood':
      return `${streamText(step.on)}: ${step.count} fills of another array`;
    case 'graph':
      return `${streamText(step.on)}.launch(graph ${step.graph}, { x: a${step.x}, y: a${step.y} })${step.isBad ? ' with by: FAILS' : ''}`;
    case 'fill':
      return `${streamText(step.on)}.fill(a${step.to}${partText(step.part)}, ${step.value})`;
    case 'upload':
      return `${streamText(step.on)}.copy(a${step.to}${partText(step.part)}, [${step.value}, ${step.value + 1}, ...])`;
    case 'copy':
      return `${streamText(step.on)}.copy(a${step.to}${partText(step.part)}, a${step.from}${partText(step.fromPart)})`;
    case 'download':
      return `${streamText(step.on)}.copy(new Int32Array, a${step.from}${partText(step.part)})`;
    case 'pin':
      return `${streamText(step.on)}.copy(pinned ${step.pinned}${partText(step.part)}, a${step.from}${partText(step.part)})`;
    case 'unpin':
      return `${streamText(step.on)}.copy(a${step.to}${partText(step.part)}, pinned ${step.pinned}${partText(step.part)})`;
    case 'read':
      return `a${step.from}${partText(step.part)}.${step.how}`;
    case 'temporary':
      return `dispose a${step.to}; a${step.to} = ${step.clones === undefined ? `full ${step.value}` : `clone of a${step.clones}`} on ${streamText(step.on)}`;
    case 'wait':
      return `${streamText(step.on)} waits for ${step.isEvent ? 'an event of ' : ''}${streamText(step.other)}`;
    case 'await':
      return `await the promise ${step.back} before the last`;
    case 'stand':
      return `this thread stands still for ${step.microseconds} us`;
    case 'turn':
      return 'a turn of the event loop';
    default:
      return `${streamText(step.on)}.${step.kind}`;
  }
}

/** The program as text. */
export function textOf({ graphs, steps, asks, devices }: FailingProgram): string {
  const lines = graphs.map(({ device, nodes }, n) => `graph ${n} on device ${device}: ${nodes.map(nodeText).join('; ')}`);
  return [
    `${devices} devices; arrays a0 to a${devices * ARRAYS - 1} of ${LENGTH} i32, array n has n * 10 + its index at first`,
    ...lines,
    ...steps.map((step, n) => `${n}: ${stepText(step)}${asks[n] ? ', done is read' : ''}`),
  ].join('\n');
}
