// A graph in the language of Graphviz, for the drawing of graph-svg.ts.
//
// Graphviz has no fonts here and guesses the width of a text. So every label is a table cell of at least the width that the text takes in
// the monospaced fonts of the style sheet: no label is wider than its shape.
import { bodyName, nameOf, type GraphBody, type GraphEdge, type GraphNode } from './graph-nodes.js';

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

/** The text for Graphviz, and the tooltips of its nodes and edges by the titles that Graphviz gives them: 'n0', 'n0->n1'. */
export interface Drawing {
  readonly dot: string;
  readonly tooltips: ReadonlyMap<string, string>;
}

/** One cluster for each stream, and in it one for each body of a condition. */
export function drawingOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Drawing {
  const isOnOneDevice = nodes.every(({ device }) => device === nodes[0]?.device);
  const streams = new Map<string, GraphNode[]>();
  for (const node of nodes) {
    const key = isOnOneDevice ? node.stream : `${node.device} ${node.stream}`;
    const members = streams.get(key);
    if (members === undefined) streams.set(key, [node]);
    else members.push(node);
  }
  const drawer = new Drawer();
  // Without newrank, Graphviz ranks each cluster by itself, and arrows between clusters may point upwards.
  drawer.add(
    'digraph {',
    '  graph [rankdir=TB, newrank=true, compound=true, nodesep=0.35, ranksep=0.4, pad=0.15, bgcolor=white, fontname=Courier];',
  );
  drawer.add('  node [fontname=Courier, margin="0.12,0.06"]; edge [arrowsize=0.7];');
  let cluster = 0;
  for (const [stream, members] of streams) {
    drawer.add(`  subgraph cluster_${cluster++} {`, `    style="rounded,filled"; margin=12; label=<${table([[stream, NAME_SIZE]])}>;`);
    for (const node of members) drawer.addNode(node, TOP);
    drawer.add('  }');
  }
  drawer.addEdges({ nodes, edges }, TOP);
  drawer.add('}');
  return { dot: `${drawer.lines.join('\n')}\n`, tooltips: drawer.tooltips };
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
  readonly lines: string[] = [];
  readonly tooltips = new Map<string, string>();

  add(...lines: readonly string[]): void {
    this.lines.push(...lines);
  }

  addNode(node: GraphNode, place: Place): void {
    const { id, kind, device, stream } = node;
    const name = place.prefix + id;
    this.tooltips.set(name, `${id}: ${nameOf(node)} on stream ${stream} of ${device}${place.where}`);
    this.add(`    ${name} [class="kind_${kind}", shape=${SHAPES.get(kind) ?? 'box, style=filled'}, label=<${labelOf(node)}>];`);
    for (const [n, body] of node.bodies?.entries() ?? []) this.#addBody(node, n, body, place);
  }

  addEdges({ nodes, edges }: GraphBody, { prefix, where }: Place): void {
    for (const [from, to] of edges) {
      const [before, after] = [nodes[from] as GraphNode, nodes[to] as GraphNode];
      this.add(`  ${tailOf(before, prefix)} -> ${headOf(after, prefix)};`);
      this.tooltips.set(`${prefix}${from}->${prefix}${to}`, `${to} after ${from}${where}`);
      // What comes after a condition is drawn below its bodies.
      if (before.bodies === undefined) continue;
      for (const end of endsOf(before, prefix)) this.add(`  ${end} -> ${prefix}${to} [style=invis, weight=0];`);
    }
  }

  #addBody(node: GraphNode, n: number, body: GraphBody, { prefix, where }: Place): void {
    const [condition, title] = [`${prefix}${node.id}`, bodyName(node.kind, n)];
    const frame = `${condition}_${n}`;
    const inside: Place = { prefix: `${frame}_`, where: `, in ${title} of node ${node.id}${where}` };
    this.add(`    subgraph cluster_${frame} {`);
    this.add(`    class=body; style="rounded,dashed"; margin=10; label=<${table([[title, KIND_SIZE]])}>;`);
    for (const inner of body.nodes) this.addNode(inner, inside);
    this.addEdges(body, inside);
    // Graphviz draws no cluster without a node.
    if (body.nodes.length === 0) this.add(`    ${inside.prefix} [shape=box, style=invis, label="", width=0.5, height=0.5];`);
    this.add('    }');
    for (const [nth, first] of firstsOf(body, inside.prefix).entries()) {
      const shown = nth === 0 ? `style=dashed, lhead=cluster_${frame}` : 'style=invis';
      this.add(`    ${condition} -> ${first} [${shown}, minlen=2];`);
      if (nth === 0) this.tooltips.set(`${condition}->${topOf(first)}`, `node ${node.id} runs ${title}${where}`);
    }
  }
}

/** The node of the end of an arrow. */
function topOf(end: string): string {
  return end.replace(/:.*/, '');
}

/** What of a body comes after no other node of it. */
function firstsOf({ nodes, edges }: GraphBody, prefix: string): readonly string[] {
  const later = new Set(edges.map(([, to]) => to));
  return nodes.length === 0 ? [prefix] : nodes.filter(({ id }) => !later.has(id)).map((node) => headOf(node, prefix));
}

/** The lowest nodes of the drawing of a node: itself, or in its bodies what nothing comes after. */
function endsOf({ id, bodies }: GraphNode, prefix: string): readonly string[] {
  if (bodies === undefined) return [`${prefix}${id}`];
  return bodies.flatMap(({ nodes, edges }, n) => {
    const inner = `${prefix}${id}_${n}_`;
    const earlier = new Set(edges.map(([from]) => from));
    return nodes.length === 0 ? [inner] : nodes.filter((node) => !earlier.has(node.id)).flatMap((node) => endsOf(node, inner));
  });
}

/** Where an arrow to the node ends: for an empty one at its dot, not at the label beside it. */
function headOf({ id, kind }: GraphNode, prefix: string): string {
  return `${prefix}${id}${kind === 'empty' ? ':dot:n' : ''}`;
}

function tailOf({ id, kind }: GraphNode, prefix: string): string {
  return `${prefix}${id}${kind === 'empty' ? ':dot:s' : ''}`;
}

function labelOf({ kind, label }: GraphNode): string {
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
