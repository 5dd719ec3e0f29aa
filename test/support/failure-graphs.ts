// Launches of graphs and conditions in the model of failures.
import { copyInModel, EITHER, GOOD, OPEN, outcomeOf, runKernel, usedPart, usesOf, KERNEL_MODELS } from './failure-model.js';
import type { KernelCall, ModelArray, Outcome, Part, State } from './failure-model.js';
import type { GraphSpec, GraphStep } from './failing-programs.js';

/** The root of failures that the data decide in graphs: nothing tells one launch of the graph from another. */
export const GRAPH_ROOT = 900;

/** The graph with the nodes of the graphs in it, whose launches have the parameter 0. */
export function flattened({ device, nodes }: GraphSpec, graphs: readonly GraphSpec[]): GraphSpec {
  const inner = (which: number): readonly GraphStep[] =>
    flattened(graphs[which]!, graphs).nodes.map((node) =>
      node.kind === 'launch' ? { kind: 'launch', call: { ...node.call, isBad: false, hasSlotIndex: isGiven(node.call) } } : node,
    );
  return { device, nodes: nodes.flatMap((node) => (node.kind === 'embed' ? inner(node.graph) : [node])) };
}

const isGiven = ({ isBad, hasSlotIndex }: KernelCall): boolean => isBad || hasSlotIndex === true;

/** A launch: all of it fails if one node does. `arrayOf` gives the array of a place. */
export function runGraph({ nodes }: GraphSpec, arrayOf: (place: number) => ModelArray, isBad: boolean, n: number): Outcome {
  const scratch = new Map<ModelArray, ModelArray>();
  const of = (place: number): ModelArray => {
    const array = arrayOf(place);
    if (!scratch.has(array)) scratch.set(array, array.copy());
    return scratch.get(array)!;
  };
  let state: State = GOOD;
  const roots = new Set<number>();
  const written = new Map<ModelArray, Part[]>();
  const note = (outcome: Outcome, part: Part, ...to: number[]): void => {
    state = Math.max(state, outcome.state) as State;
    for (const root of outcome.roots) roots.add(root);
    for (const place of to) written.set(arrayOf(place), [...(written.get(arrayOf(place)) ?? []), part]);
  };
  for (const node of nodes) {
    if (node.kind === 'launch') {
      const { call } = node;
      const isOwn = call.name === 'gather' || (call.isBad && isBad);
      const outcome = runKernel(
        { ...call, isBad: isOwn && call.isBad, hasSlotIndex: isGiven(call) },
        of,
        call.name === 'gather' ? GRAPH_ROOT : n,
      );
      note(outcome, usedPart(call), ...usesOf(call).writes);
    } else if (node.kind === 'fill') {
      of(node.to).write(node.part, new Int32Array(node.part.count).fill(node.value), { state: GOOD, roots: new Set() });
      note({ state: GOOD, roots: new Set() }, node.part, node.to);
    } else if (node.kind === 'copy') note(copyInModel(of(node.to), node.part, of(node.from), node.fromPart), node.part, node.to);
  }
  for (const [array, model] of scratch) {
    if (!written.has(array)) continue;
    array.become(model);
    if (state === GOOD) continue;
    for (const part of written.get(array)!) array.write(part, model.valuesOf(part), { state, roots });
  }
  return { state, roots };
}

/**
 * A condition outside of a graph. Bodies clear no failures, as which of them runs is known to the device alone; a failure of the condition, or
 * of a body, is one of all arrays that bodies write. Whether the launch fails because of an array of the body that does not run is left open.
 */
export function runCondition(
  flag: ModelArray,
  at: number,
  bodies: readonly [KernelCall, KernelCall],
  of: (place: number) => ModelArray,
  n: number,
): Outcome {
  const condition = outcomeOf([[flag, { start: at, count: 1, stride: 1 }]]);
  const taken = flag.values[at] === 0 ? 1 : 0;
  const [run, other] = [bodies[taken], bodies[1 - taken]!];
  const roots = new Set(condition.roots);
  let { state } = condition;
  const note = (outcome: Outcome, most: State): void => {
    state = Math.max(state, Math.min(outcome.state, most)) as State;
    for (const root of outcome.roots) roots.add(root);
  };
  const places = { x: other.x, y: other.y, z: other.z };
  note(outcomeOf(KERNEL_MODELS[other.name].reads.map((name) => [of(places[name]), usedPart(other)] as const)), EITHER);
  if (condition.state === OPEN) roots.add(n);
  note(runKernel(run, of, n, false), 3);
  for (const call of [run, other]) for (const place of usesOf(call).writes) of(place).worsen(usedPart(call), { state, roots });
  return { state, roots };
}

/** The places of arrays that a graph uses. */
export function usesOfGraph({ nodes }: GraphSpec): { readonly reads: ReadonlySet<number>; readonly writes: ReadonlySet<number> } {
  const [reads, writes] = [new Set<number>(), new Set<number>()];
  for (const node of nodes) {
    if (node.kind === 'embed') continue;
    const uses = node.kind === 'launch' ? usesOf(node.call) : { reads: node.kind === 'copy' ? [node.from] : [], writes: [node.to] };
    for (const one of uses.reads) reads.add(one);
    for (const one of uses.writes) writes.add(one);
  }
  return { reads, writes };
}
