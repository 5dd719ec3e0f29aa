// A graph as its user sees it: its nodes, and the edges between them.
import type { DeviceCore } from '../device/device-core.js';
import type { KernelFacts } from '../timeline/failure-errors.js';
import type { FailingGraph } from '../timeline/graph-launches.js';
import type { CapturedNode, GraphNodeKind } from './captured-node.js';

/** One operation of a graph. */
export interface GraphNode {
  /** Its number, in the order of the calls: edges name it. */
  readonly id: number;
  /** What it does. 'empty' for an operation on no elements, and for the join that follows the nodes of an embedded graph. */
  readonly kind: GraphNodeKind;
  /** The `label` of the call's options; for a launch without one, the kernel's name; for the join of an embedded graph, its label. */
  readonly label?: string;
  /** The id of the device that runs it. */
  readonly device: string;
  /** The label of the stream that it was captured on. */
  readonly stream: string;
  /** Of an 'if', 'while' or 'switch', what it runs, in the order of the arguments of the call. */
  readonly bodies?: readonly GraphBody[];
}

/** One body of a condition: what `captureIf`, `captureWhile` or `captureSwitch` got as a function or graph. */
export interface GraphBody {
  /** The operations, with numbers of their own. */
  readonly nodes: readonly GraphNode[];
  /** Which node of the body comes after which. */
  readonly edges: readonly GraphEdge[];
}

/** When a node of a launch ran. */
export interface NodeTime {
  /** The `id` of the node in `nodes`. */
  readonly id: number;
  /** Microseconds from the beginning of the launch until all nodes that it comes after had finished. */
  readonly startUs: number;
  /** Microseconds from then until it had finished, the wait for a free place on the device included. */
  readonly durationUs: number;
}

/** Two nodes by id: the second comes after the first. */
export type GraphEdge = readonly [from: number, to: number];

export function nodesOf(nodes: readonly CapturedNode[]): readonly GraphNode[] {
  return nodes.map(({ kind, label, stream, condition }, id) =>
    Object.freeze({
      id,
      kind,
      ...(label !== undefined && { label }),
      device: stream.core.name,
      stream: stream.label,
      ...(condition !== undefined && {
        bodies: condition.bodies.map((body) => Object.freeze({ nodes: nodesOf(body), edges: edgesOf(body) })),
      }),
    }),
  );
}

/** The edges, without those that follow from others. */
export function edgesOf(nodes: readonly CapturedNode[]): readonly GraphEdge[] {
  const edges: GraphEdge[] = [];
  for (const [to, { after }] of nodes.entries()) for (const from of after) edges.push(Object.freeze([from, to] as const));
  return edges;
}

/** A node in messages: 'launch blur', 'fill'. */
export function nameOf({ kind, label }: Pick<GraphNode, 'kind'> & { readonly label?: string | undefined }): string {
  return label === undefined || label === kind ? kind : `${kind} ${label}`;
}

/** 'a fill', 'an if'. */
function withArticle(kind: GraphNodeKind): string {
  return `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`;
}

/** What drawings call a body of a condition: 'then', 'else', 'do', 'case 0'. */
export function bodyName(kind: GraphNodeKind, n: number): string {
  if (kind === 'switch') return `case ${n}`;
  if (kind === 'while') return 'do';
  return n === 0 ? 'then' : 'else';
}

/** What messages of failures say of the nodes. It keeps none of the graph's memory. */
export class NamedNodes implements FailingGraph {
  readonly #graph: string;
  readonly #nodes: readonly { readonly name: string; readonly core: DeviceCore }[];

  constructor(graph: string, nodes: readonly CapturedNode[]) {
    this.#graph = graph;
    this.#nodes = nodes.map((node) => ({ name: nameOf(node), core: node.stream.core }));
  }

  failedNode(number: number, kernel: number): { readonly name: string; readonly kernel: KernelFacts | undefined } {
    const node = this.#nodes[number];
    if (node === undefined) return { name: `node ${number} of graph ${this.#graph}`, kernel: undefined };
    return { name: `node ${number} (${node.name}) of graph ${this.#graph}`, kernel: node.core.kernelRegistry.byHandle(kernel) };
  }
}

/** The times of the nodes, from when each ended in milliseconds since the beginning of the launch. */
export function timesOf(nodes: readonly CapturedNode[], endsMs: readonly number[]): readonly NodeTime[] {
  return nodes.map(({ after }, id) => {
    // The clock of a GPU has steps of half a microsecond, so a node may seem to end before it begins.
    const startMs = Math.max(0, ...after.map((earlier) => endsMs[earlier] as number));
    return Object.freeze({ id, startUs: startMs * 1000, durationUs: Math.max(0, (endsMs[id] as number) - startMs) * 1000 });
  });
}

/** In which respect two graphs differ that should have the same nodes; undefined if they do not. */
export function differenceOf(one: readonly CapturedNode[], other: readonly CapturedNode[]): string | undefined {
  if (one.length !== other.length) return `${other.length} nodes instead of ${one.length}`;
  for (const [id, node] of other.entries()) {
    const { kind, stream, after, condition } = node;
    const former = one[id] as CapturedNode;
    const what = (): string => `node ${id} (${nameOf(node)})`;
    if (kind !== former.kind) return `${what()} is ${withArticle(kind)} instead of ${withArticle(former.kind)}`;
    if (stream.core !== former.stream.core) return `${what()} is on device ${stream.core.name} instead of ${former.stream.core.name}`;
    if (after.length !== former.after.length || after.some((earlier, n) => earlier !== former.after[n]))
      return `${what()} comes after nodes [${after.join(', ')}] instead of [${former.after.join(', ')}]`;
    if (condition === undefined && former.condition === undefined) continue;
    const [bodies, formerBodies] = [condition?.bodies ?? [], former.condition?.bodies ?? []];
    if (bodies.length !== formerBodies.length)
      return `${what()} has ${bodies.length} ${bodies.length === 1 ? 'body' : 'bodies'} instead of ${formerBodies.length}`;
    for (const [n, body] of bodies.entries()) {
      const difference = differenceOf(formerBodies[n] as readonly CapturedNode[], body);
      if (difference !== undefined) return `in body ${n} of ${what()}, ${difference}`;
    }
  }
  return undefined;
}
