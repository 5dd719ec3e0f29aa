// A graph in the language of Graphviz, for users and for the drawing of graph-svg.ts.
//
// Graphviz has no fonts in the drawing and guesses the width of a text: exactly for Courier, whose characters are as wide as those of the
// fonts in the style sheet.
import type { CapturedNode } from './captured-node.js';
import { bodyName, nameOf } from './graph-view.js';

/** How nodes look that are no launches. */
const LOOKS: ReadonlyMap<string, string> = new Map([
  ['copy', 'shape=note, style=filled, '],
  ['fill', 'shape=ellipse, '],
  ['host', 'shape=hexagon, style=filled, '],
  ['empty', 'shape=plaintext, style="", '],
  ['if', 'shape=diamond, style=filled, '],
  ['while', 'shape=diamond, style=filled, '],
  ['switch', 'shape=diamond, style=filled, '],
]);
/** Longer labels are cut; tooltips have them whole. */
const MAX_LABEL = 48;

type Nodes = readonly CapturedNode[];

/** Where nodes are: in the graph or in a body. */
interface Place {
  /** Of the names of its nodes for Graphviz. */
  readonly prefix: string;
  /** For tooltips: '', or ', in then of node 2'. */
  readonly where: string;
}

const TOP: Place = { prefix: 'n', where: '' };

/** The text in parts of some lines: one cluster for each stream, and in it one for each body of a condition. */
export function* dotOf(label: string, nodes: Nodes): Generator<string> {
  const isOnOneDevice = nodes.every(({ stream }) => stream.core === nodes[0]?.stream.core);
  const streams = new Map<string, number[]>();
  for (const [id, { stream }] of nodes.entries()) {
    const key = isOnOneDevice ? stream.label : `${stream.core.name} ${stream.label}`;
    const members = streams.get(key);
    if (members === undefined) streams.set(key, [id]);
    else members.push(id);
  }
  // Without newrank, Graphviz ranks each cluster by itself, and arrows between clusters may point upwards.
  yield `digraph "${escaped(label)}" {\n  graph [newrank=true, compound=true, nodesep=0.35, ranksep=0.4, fontname=Courier, fontsize=13];\n`;
  yield '  node [shape=box, style="rounded,filled", fontname=Courier, fontsize=13, margin="0.16,0.08"]; edge [arrowsize=0.7];\n';
  let cluster = 0;
  for (const [stream, members] of streams) {
    yield `  subgraph cluster_${cluster++} {\n    label="${shortened(stream)}"; style="rounded,filled"; margin=12;\n`;
    for (const id of members) yield* dotOfNode(nodes, id, TOP);
    yield '  }\n';
  }
  yield* dotOfEdges(nodes, TOP.prefix);
  yield '}\n';
}

function* dotOfNode(nodes: Nodes, id: number, place: Place): Generator<string> {
  const node = nodes[id] as CapturedNode;
  const { kind, label, stream, condition } = node;
  const name = place.prefix + id;
  const shown = label === undefined || label === kind ? kind : `${kind}\\n${shortened(label)}`;
  const tooltip = `${id}: ${escaped(nameOf(node))} on stream ${escaped(stream.label)} of ${stream.core.name}${place.where}`;
  yield `    ${name} [label="${shown}", class=${kind}, ${LOOKS.get(kind) ?? ''}tooltip="${tooltip}"];\n`;
  for (const [n, body] of condition?.bodies.entries() ?? []) yield* dotOfBody(name, id, bodyName(kind, n), n, body, place);
}

function* dotOfEdges(nodes: Nodes, prefix: string): Generator<string> {
  for (const [to, { after }] of nodes.entries()) {
    for (const from of after) {
      yield `  ${prefix}${from} -> ${prefix}${to};\n`;
      // What comes after a condition is drawn below its bodies.
      if (nodes[from]?.condition === undefined) continue;
      for (const end of endsOf(nodes, from, prefix)) yield `  ${end} -> ${prefix}${to} [style=invis, weight=0];\n`;
    }
  }
}

function* dotOfBody(condition: string, id: number, title: string, n: number, nodes: Nodes, { where }: Place): Generator<string> {
  const frame = `${condition}_${n}`;
  const inside: Place = { prefix: `${frame}_`, where: `, in ${title} of node ${id}${where}` };
  yield `    subgraph cluster_${frame} {\n    label="${title}"; class=body; style="rounded,dashed"; margin=10;\n`;
  for (const inner of nodes.keys()) yield* dotOfNode(nodes, inner, inside);
  yield* dotOfEdges(nodes, inside.prefix);
  // Graphviz draws no cluster without a node.
  if (nodes.length === 0) yield `    ${inside.prefix} [style=invis, label=""];\n`;
  yield '    }\n';
  for (const [nth, first] of firstsOf(nodes, inside.prefix).entries()) {
    const look = nth === 0 ? `style=dashed, lhead=cluster_${frame}` : 'style=invis';
    yield `    ${condition} -> ${first} [${look}, minlen=2];\n`;
  }
}

/** What of a body comes after no other node of it. */
function firstsOf(nodes: Nodes, prefix: string): readonly string[] {
  if (nodes.length === 0) return [prefix];
  return [...nodes.keys()].filter((id) => nodes[id]?.after.length === 0).map((id) => prefix + id);
}

/** The lowest nodes of the drawing of a node: itself, or in its bodies what nothing comes after. */
function endsOf(nodes: Nodes, id: number, prefix: string): readonly string[] {
  const { condition } = nodes[id] as CapturedNode;
  if (condition === undefined) return [`${prefix}${id}`];
  return condition.bodies.flatMap((body, n) => {
    const inner = `${prefix}${id}_${n}_`;
    const earlier = new Set(body.flatMap(({ after }) => after));
    return body.length === 0 ? [inner] : [...body.keys()].filter((at) => !earlier.has(at)).flatMap((at) => endsOf(body, at, inner));
  });
}

/** Text that stands for itself. */
const PLAIN = /^[\w :,.-]*$/;

function shortened(text: string): string {
  if (text.length <= MAX_LABEL) return escaped(text);
  const characters = Array.from(text);
  return escaped(characters.length <= MAX_LABEL ? text : `${characters.slice(0, MAX_LABEL - 1).join('')}…`);
}

/**
 * In a string of Graphviz: it would take '&amp;' for '&', and `\N` for the name of the node. Control characters and halves of surrogate pairs
 * have no place in SVG.
 */
function escaped(text: string): string {
  if (PLAIN.test(text)) return text;
  const line = text.replaceAll(/[\p{Cc}\p{Cs}\u{FFFE}\u{FFFF}]+/gu, ' ').trim();
  return line.replaceAll('&', '&amp;').replaceAll(/["\\]/g, String.raw`\$&`);
}
