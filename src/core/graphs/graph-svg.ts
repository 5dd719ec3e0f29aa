// A graph as a drawing: SVG that Graphviz lays out, compiled to WebAssembly in the package @viz-js/viz, which users install if they draw.
//
// Graphviz has no fonts here and guesses the width of a text. So every label is a table cell of at least the width that the text takes in
// the monospaced fonts of the style sheet: no label is wider than its shape. Colours are in a style sheet with a light and a dark half.
import { StateError, UnavailableError } from '../base/errors.js';
import type { GraphEdge, GraphNode } from './graph-nodes.js';

/** What this file uses of @viz-js/viz. */
interface Graphviz {
  renderString(dot: string, options: { readonly format: 'svg' }): string;
}

/** The shapes of Graphviz by kind of node; others are boxes. */
const SHAPES: ReadonlyMap<string, string> = new Map([
  ['launch', 'box, style="rounded,filled"'],
  ['copy', 'note, style=filled'],
  ['fill', 'ellipse, style=filled'],
  ['host', 'hexagon, style=filled'],
  ['empty', 'circle, style=filled'],
  ['if', 'diamond, style=filled'],
  ['while', 'diamond, style=filled'],
  ['switch', 'diamond, style=filled'],
]);

/** Points. */
const KIND_SIZE = 10;
const NAME_SIZE = 13;
/** The widest advance of the fonts below, in parts of their size. */
const ADVANCE = 0.625;
/** Longer labels are cut in the drawing; its tooltips have them whole. */
const MAX_LABEL = 48;

const STYLE = `
  .millrace-graph { --page: #ffffff; --area: #f3f5f8; --line: #a9b4c2; --edge: #4a5563; --text: #17202c; --muted: #56616f;
    --launch: #d9e8fb; --copy: #d8f0e0; --fill: #fbeccb; --host: #ecdff8; --other: #e6e9ee; }
  @media (prefers-color-scheme: dark) {
    .millrace-graph { --page: #12161d; --area: #1b212b; --line: #55606f; --edge: #a3afbe; --text: #eef2f7; --muted: #a9b4c2;
      --launch: #1f4069; --copy: #1d4a33; --fill: #574217; --host: #442d60; --other: #323b48; }
  }
  .millrace-graph text { font-family: 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace; fill: var(--text); }
  .millrace-graph text[font-size='${KIND_SIZE}.00'], .millrace-graph .cluster text { fill: var(--muted); }
  .millrace-graph .graph > polygon { fill: var(--page); stroke: none; }
  .millrace-graph .cluster > path, .millrace-graph .cluster > polygon { fill: var(--area); stroke: var(--line); }
  .millrace-graph .node > path, .millrace-graph .node > polygon, .millrace-graph .node > ellipse { fill: var(--other); stroke: var(--edge); }
  .millrace-graph .node > polyline { fill: none; stroke: var(--edge); }
  .millrace-graph .kind_launch > path { fill: var(--launch); }
  .millrace-graph .kind_copy > polygon { fill: var(--copy); }
  .millrace-graph .kind_fill > ellipse { fill: var(--fill); }
  .millrace-graph .kind_host > polygon { fill: var(--host); }
  .millrace-graph .edge > path { stroke: var(--edge); }
  .millrace-graph .edge > polygon { fill: var(--edge); stroke: var(--edge); }
`;

/** The drawing. Rejects with UnavailableError if the package is not installed. */
export async function svgOf(
  label: string,
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[],
  load: () => Promise<{ instance(): Promise<Graphviz> }> = () => import('@viz-js/viz'),
): Promise<string> {
  const graphviz = await graphvizOf(load);
  const counted = `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`;
  const drawn = layOut(graphviz, drawingOf(nodes, edges), `graph ${label} (${counted}, ${edges.length} edges)`);
  return drawn
    .slice(drawn.indexOf('<svg'))
    .replaceAll(/<!--.*?-->\n?/gs, '')
    .replace('<svg', '<svg class="millrace-graph" role="img"')
    .replaceAll(/ font-family="[^"]*"/g, '')
    .replace(/(<svg[^>]*>)/, (head) => `${head}\n<title>${escaped(`Graph ${label} (${counted})`)}</title>\n<style>${STYLE}</style>`)
    .replace(/(<g id="graph0"[^>]*>)\n<title>.*?<\/title>/, '$1')
    .replaceAll(/<title>cluster_\d+<\/title>\n?/g, '')
    .replaceAll(/<title>n(\d+)<\/title>/g, (_, id: string) => `<title>${escaped(titleOf(nodes[Number(id)] as GraphNode))}</title>`)
    .replaceAll(/<title>n(\d+)&#45;&gt;n(\d+)<\/title>/g, '<title>$2 after $1</title>')
    .replaceAll(/<g id="[^"]*" class="(?:node|cluster)\b.*?<\/g>/gs, centred);
}

function layOut(graphviz: Graphviz, drawing: string, what: string): string {
  try {
    return graphviz.renderString(drawing, { format: 'svg' });
  } catch (cause) {
    // WebAssembly has less memory than the process.
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StateError('ERR_MILLRACE_STATE', `Graphviz cannot lay out ${what}: ${reason}`, { cause });
  }
}

/** The texts of a node or frame, in the middle of its shape. */
function centred(group: string): string {
  const [, outline = ''] = / (?:d|points)="([^"]*)"/.exec(group) ?? [];
  const xs = [...outline.matchAll(/(-?[\d.]+),-?[\d.]+/g)].map(([, x]) => Number(x));
  const [, cx] = / cx="([^"]*)"/.exec(group) ?? [];
  const middle = cx ?? String(Math.round((Math.min(...xs) + Math.max(...xs)) * 50) / 100);
  return group.replaceAll(/text-anchor="start" x="[^"]*"/g, `text-anchor="middle" x="${middle}"`);
}

async function graphvizOf(load: () => Promise<{ instance(): Promise<Graphviz> }>): Promise<Graphviz> {
  try {
    const { instance } = await load();
    return await instance();
  } catch (cause) {
    throw new UnavailableError(
      'ERR_MILLRACE_UNAVAILABLE',
      'Drawings of graphs need the package @viz-js/viz, which cannot be loaded.',
      ['Install it beside millrace: npm install @viz-js/viz', 'Or give the text of toDot() to Graphviz.'],
      { cause },
    );
  }
}

/** The graph in the language of Graphviz, one cluster for each stream. */
function drawingOf(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): string {
  const isOnOneDevice = nodes.every(({ device }) => device === nodes[0]?.device);
  const streams = new Map<string, GraphNode[]>();
  for (const node of nodes) {
    const key = isOnOneDevice ? node.stream : `${node.device} ${node.stream}`;
    const members = streams.get(key);
    if (members === undefined) streams.set(key, [node]);
    else members.push(node);
  }
  const lines = [
    'digraph {',
    '  graph [rankdir=TB, nodesep=0.35, ranksep=0.4, pad=0.15, bgcolor=white, fontname=Courier];',
    '  node [fontname=Courier, margin="0.12,0.06"]; edge [arrowsize=0.7];',
  ];
  let cluster = 0;
  for (const [stream, members] of streams) {
    lines.push(`  subgraph cluster_${cluster++} {`, `    style="rounded,filled"; margin=12; label=<${table([[stream, NAME_SIZE]])}>;`);
    for (const { id, kind, label } of members) {
      const rows: [string, number][] =
        label === undefined || label === kind
          ? [[kind, NAME_SIZE]]
          : [
              [kind, KIND_SIZE],
              [label, NAME_SIZE],
            ];
      lines.push(`    n${id} [class="kind_${kind}", shape=${SHAPES.get(kind) ?? 'box, style=filled'}, label=<${table(rows)}>];`);
    }
    lines.push('  }');
  }
  for (const [from, to] of edges) lines.push(`  n${from} -> n${to};`);
  lines.push('}');
  return `${lines.join('\n')}\n`;
}

/** Texts with their sizes, as the rows of a label. */
function table(rows: readonly (readonly [text: string, size: number])[]): string {
  const cells = rows.map(([text, size]) => {
    const shown = shortened(text);
    return `<TR><TD WIDTH="${Math.ceil(widthOf(shown) * size)}" HEIGHT="${size + 3}"><FONT POINT-SIZE="${size}">${escaped(shown)}</FONT></TD></TR>`;
  });
  return `<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">${cells.join('')}</TABLE>`;
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

function titleOf({ id, kind, label, device, stream }: GraphNode): string {
  return `${id}: ${kind}${label === undefined || label === kind ? '' : ` ${label}`} on stream ${stream} of ${device}`;
}

function escaped(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cs}\u{FFFE}\u{FFFF}]+/gu, ' ')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
