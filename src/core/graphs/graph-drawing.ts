// A graph in the language of Graphviz, for the drawing of graph-svg.ts.
//
// Graphviz has no fonts here and guesses the width of a text. So every label is a table cell of at least the width that the text takes in
// the monospaced fonts of the style sheet: no label is wider than its shape.
import type { CapturedNode } from './captured-node.js';
import { bodyName, nameOf } from './graph-view.js';

/** The attributes of a node by kind; others are boxes. */
const SHAPES: ReadonlyMap<string, string> = new Map([
  ['launch', 'box, style="rounded,filled"'],
  ['copy', 'note, style=filled'],
  ['fill', 'ellipse, style=filled'],
  ['host', 'hexagon, style=filled'],
  ['empty', 'plain'],
  ['if', 'diamond, style=filled'],
  ['while', 'diamond, style=filled'],
  ['switch', 'diamond, style=filled'],
]);

/** Points. */
export const KIND_SIZE = 10;
const NAME_SIZE = 13;
const DOT_SIZE = 10;
/** The widest advance of the fonts of the style sheet, in parts of their size. */
const ADVANCE = 0.625;
/** Longer labels are cut in the drawing; its tooltips have them whole. */
const MAX_LABEL = 48;

/** One node or stream of a graph takes several lines. */
export interface Drawing {
  /** The text for Graphviz, in parts of some lines. */
  readonly dot: Iterable<string>;
  /** Once `dot` was read: the tooltips of nodes and edges by the titles that Graphviz gives them, 'n0', 'n0->n1'. */
  readonly tooltips: ReadonlyMap<string, string>;
}

type Nodes = readonly CapturedNode[];

/** One cluster for each stream, and in it one for each body of a condition. */
export function drawingOf(nodes: Nodes): Drawing {
  const tooltips = new Map<string, string>();
  return { dot: new Drawer(tooltips).graph(nodes), tooltips };
}

/** Where nodes are: in the graph or in a body. */
interface Place {
  /** Of the names of its nodes for Graphviz. */
  readonly prefix: string;
  /** For tooltips: '', or ', in then of node 2'. */
  readonly where: string;
}

const TOP: Place = { prefix: 'n', where: '' };

class Drawer {
  readonly #tooltips: Map<string, string>;

  constructor(tooltips: Map<string, string>) {
    this.#tooltips = tooltips;
  }

  *graph(nodes: Nodes): Generator<string> {
    const isOnOneDevice = nodes.every(({ stream }) => stream.core === nodes[0]?.stream.core);
    const streams = new Map<string, number[]>();
    for (const [id, { stream }] of nodes.entries()) {
      const key = isOnOneDevice ? stream.label : `${stream.core.name} ${stream.label}`;
      const members = streams.get(key);
      if (members === undefined) streams.set(key, [id]);
      else members.push(id);
    }
    // Without newrank, Graphviz ranks each cluster by itself, and arrows between clusters may point upwards.
    yield 'digraph {\n  graph [rankdir=TB, newrank=true, compound=true, nodesep=0.35, ranksep=0.4, pad=0.15, bgcolor=white, fontname=Courier];\n';
    yield '  node [fontname=Courier, margin="0.12,0.06"]; edge [arrowsize=0.7];\n';
    let cluster = 0;
    for (const [stream, members] of streams) {
      yield `  subgraph cluster_${cluster++} {\n    style="rounded,filled"; margin=12; label=<${table([[stream, NAME_SIZE]])}>;\n`;
      for (const id of members) yield* this.#node(nodes, id, TOP);
      yield '  }\n';
    }
    yield* this.#edges(nodes, TOP);
    yield '}\n';
  }

  *#node(nodes: Nodes, id: number, place: Place): Generator<string> {
    const node = nodes[id] as CapturedNode;
    const { kind, stream, condition } = node;
    const name = place.prefix + id;
    this.#tooltips.set(name, `${id}: ${nameOf(node)} on stream ${stream.label} of ${stream.core.name}${place.where}`);
    yield `    ${name} [class="kind_${kind}", shape=${SHAPES.get(kind) ?? 'box, style=filled'}, label=<${labelOf(node)}>];\n`;
    for (const [n, body] of condition?.bodies.entries() ?? []) yield* this.#body(name, id, bodyName(kind, n), n, body, place);
  }

  *#edges(nodes: Nodes, { prefix, where }: Place): Generator<string> {
    for (const [to, { after }] of nodes.entries()) {
      for (const from of after) {
        this.#tooltips.set(`${prefix}${from}->${prefix}${to}`, `${to} after ${from}${where}`);
        yield `  ${endOf(nodes, from, prefix, 's')} -> ${endOf(nodes, to, prefix, 'n')};\n`;
        // What comes after a condition is drawn below its bodies.
        if (nodes[from]?.condition === undefined) continue;
        for (const end of endsOf(nodes, from, prefix)) yield `  ${end} -> ${prefix}${to} [style=invis, weight=0];\n`;
      }
    }
  }

  *#body(condition: string, id: number, title: string, n: number, nodes: Nodes, { where }: Place): Generator<string> {
    const frame = `${condition}_${n}`;
    const inside: Place = { prefix: `${frame}_`, where: `, in ${title} of node ${id}${where}` };
    yield `    subgraph cluster_${frame} {\n    class=body; style="rounded,dashed"; margin=10; label=<${table([[title, KIND_SIZE]])}>;\n`;
    for (const inner of nodes.keys()) yield* this.#node(nodes, inner, inside);
    yield* this.#edges(nodes, inside);
    // Graphviz draws no cluster without a node.
    if (nodes.length === 0) yield `    ${inside.prefix} [shape=box, style=invis, label="", width=0.5, height=0.5];\n`;
    yield '    }\n';
    for (const [nth, first] of firstsOf(nodes, inside.prefix).entries()) {
      if (nth === 0) this.#tooltips.set(`${condition}->${topOf(first)}`, `node ${id} runs ${title}${where}`);
      yield `    ${condition} -> ${first} [${nth === 0 ? `style=dashed, lhead=cluster_${frame}` : 'style=invis'}, minlen=2];\n`;
    }
  }
}

/** The node of the end of an arrow. */
function topOf(end: string): string {
  return end.replace(/:.*/, '');
}

/** What of a body comes after no other node of it. */
function firstsOf(nodes: Nodes, prefix: string): readonly string[] {
  if (nodes.length === 0) return [prefix];
  return [...nodes.keys()].filter((id) => nodes[id]?.after.length === 0).map((id) => endOf(nodes, id, prefix, 'n'));
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

/** Where an arrow to or from the node ends: for an empty one above ('n') or below ('s') its dot, not at the label beside it. */
function endOf(nodes: Nodes, id: number, prefix: string, side: 'n' | 's'): string {
  return `${prefix}${id}${nodes[id]?.kind === 'empty' ? `:dot:${side}` : ''}`;
}

function labelOf({ kind, label }: CapturedNode): string {
  const isNamed = label !== undefined && label !== kind;
  if (kind === 'empty') {
    const dot = `<TD PORT="dot" FIXEDSIZE="TRUE" WIDTH="${DOT_SIZE}" HEIGHT="${DOT_SIZE}" BORDER="1" STYLE="ROUNDED"></TD>`;
    return `<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="0"><TR>${dot}${cell(isNamed ? label : kind, KIND_SIZE)}</TR></TABLE>`;
  }
  if (!isNamed) return table([[kind, NAME_SIZE]]);
  return table([
    [kind, KIND_SIZE],
    [label, NAME_SIZE],
  ]);
}

/** Texts with their sizes, as the rows of a label. */
function table(rows: readonly (readonly [text: string, size: number])[]): string {
  const cells = rows.map(([text, size]) => `<TR>${cell(text, size)}</TR>`);
  return `<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">${cells.join('')}</TABLE>`;
}

function cell(text: string, size: number): string {
  const shown = shortened(text);
  return `<TD WIDTH="${Math.ceil(widthOf(shown) * size)}" HEIGHT="${size + 3}"><FONT POINT-SIZE="${size}">${escaped(shown)}</FONT></TD>`;
}

/** In parts of the font's size. */
function widthOf(text: string): number {
  let width = 0;
  // Fonts for other scripts are used for their characters; those of East Asia and emoji are as wide as high.
  for (const character of text) width += (character.codePointAt(0) as number) < 0x1100 ? ADVANCE : 1.1;
  return width;
}

function shortened(text: string): string {
  // Control characters have no place in SVG.
  const line = text.replaceAll(/[\p{Cc}\p{Cs}\u{FFFE}\u{FFFF}]+/gu, ' ').trim();
  const characters = Array.from(line);
  if (characters.length === 0) return ' ';
  return characters.length <= MAX_LABEL ? line : `${characters.slice(0, MAX_LABEL - 1).join('')}…`;
}

/** The text in XML. */
export function escaped(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cs}\u{FFFE}\u{FFFF}]+/gu, ' ')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
