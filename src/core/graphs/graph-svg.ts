// A graph as a drawing: SVG that Graphviz lays out, compiled to WebAssembly in the package @viz-js/viz, which users install if they draw.
// Colours are in a style sheet with a light and a dark half.
import { StateError, UnavailableError } from '../base/errors.js';
import { setImmediate } from '../base/timers.js';
import { drawingOf, escaped, KIND_SIZE } from './graph-drawing.js';
import type { GraphEdge, GraphNode } from './graph-nodes.js';

const END_OF_GROUP = '</g>\n';
/** Characters of a drawing that one turn of the event loop shapes: less than a millisecond. */
const PART_LENGTH = 32_768;

/** Lays out a text for Graphviz, as SVG, or tells why it cannot. Rejects if the package cannot be loaded. */
export type LayOut = (dot: string) => Promise<{ readonly svg: string } | { readonly cause: unknown }>;

let layOut: LayOut = async (dot) => {
  const graphviz = await (await import('@viz-js/viz')).instance();
  try {
    return { svg: graphviz.renderString(dot, { format: 'svg' }) };
  } catch (cause) {
    return { cause };
  }
};

/** Called when the library loads, so that drawings are laid out on a thread of their own. */
export function installLayOut(own: LayOut): void {
  layOut = own;
}

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
  .millrace-graph .body > path, .millrace-graph .body > polygon { fill: var(--page); stroke: var(--edge); }
  .millrace-graph .kind_empty > circle { fill: var(--edge); }
  .millrace-graph .node > polyline { fill: none; stroke: var(--edge); }
  .millrace-graph .kind_launch > path { fill: var(--launch); }
  .millrace-graph .kind_copy > polygon { fill: var(--copy); }
  .millrace-graph .kind_fill > ellipse { fill: var(--fill); }
  .millrace-graph .kind_host > polygon { fill: var(--host); }
  .millrace-graph .edge > path { stroke: var(--edge); }
  .millrace-graph .edge > polygon { fill: var(--edge); stroke: var(--edge); }
`;

/** The drawing. Rejects with UnavailableError if the package is not installed. */
export async function svgOf(label: string, nodes: readonly GraphNode[], edges: readonly GraphEdge[]): Promise<string> {
  const counted = `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`;
  const { dot, tooltips } = drawingOf(nodes, edges);
  const drawn = await laidOut(dot, `graph ${label} (${counted}, ${edges.length} edges)`);
  const [first = '', ...rest] = partsOf(drawn.slice(drawn.indexOf('<svg')));
  const parts = [
    shaped(first, tooltips)
      .replace('<svg', '<svg class="millrace-graph" role="img"')
      .replace(/(<svg[^>]*>)/, (head) => `${head}\n<title>${escaped(`Graph ${label} (${counted})`)}</title>\n<style>${STYLE}</style>`)
      .replace(/(<g id="graph0"[^>]*>)\n<title>.*?<\/title>/, '$1'),
  ];
  for (const part of rest) {
    // A large drawing takes several turns of the event loop.
    await new Promise(setImmediate);
    parts.push(shaped(part, tooltips));
  }
  return parts.join('');
}

/** The parts of a drawing, each of whole nodes, edges and frames. */
function partsOf(drawn: string): string[] {
  const parts: string[] = [];
  for (let from = 0, to = 0; from < drawn.length; from = to) {
    const end = drawn.indexOf(END_OF_GROUP, from + PART_LENGTH);
    to = end < 0 ? drawn.length : end + END_OF_GROUP.length;
    parts.push(drawn.slice(from, to));
  }
  return parts;
}

function shaped(part: string, tooltips: ReadonlyMap<string, string>): string {
  return part
    .replaceAll(/<!--.*?-->\n?/gs, '')
    .replaceAll(/ font-family="[^"]*"/g, '')
    .replaceAll(/<title>cluster_\w+<\/title>\n?/g, '')
    .replaceAll(/<title>(n\w+)(?:(?::\w+)?&#45;&gt;(n\w+)(?::\w+)?)?<\/title>/g, (_, name: string, to?: string) => {
      const tooltip = tooltips.get(to === undefined ? name : `${name}->${to}`);
      return tooltip === undefined ? '' : `<title>${escaped(tooltip)}</title>`;
    })
    .replaceAll(/<g id="[^"]*" class="(?:node|cluster)\b.*?<\/g>/gs, centred);
}

async function laidOut(drawing: string, what: string): Promise<string> {
  const answer = await layOut(drawing).catch((cause: unknown) => {
    throw withoutGraphviz(cause);
  });
  if ('svg' in answer) return answer.svg;
  // WebAssembly has less memory than the process.
  const { cause } = answer;
  const reason = cause instanceof Error ? cause.message : String(cause);
  throw new StateError('ERR_MILLRACE_STATE', `Graphviz cannot lay out ${what}: ${reason}`, { cause });
}

/** The texts of a node or frame, in the middle of its shape. An empty node has its text beside a dot. */
function centred(group: string): string {
  if (group.includes('class="node kind_empty"')) return group.replace(/<path [^>]* d="([^"]*)"\/>/, (_, outline: string) => dotIn(outline));
  const [, outline = ''] = / (?:d|points)="([^"]*)"/.exec(group) ?? [];
  const xs = [...outline.matchAll(/(-?[\d.]+),-?[\d.]+/g)].map(([, x]) => Number(x));
  const [, cx] = / cx="([^"]*)"/.exec(group) ?? [];
  const middle = cx ?? halfOf(Math.min(...xs) + Math.max(...xs));
  return group.replaceAll(/text-anchor="start" x="[^"]*"/g, `text-anchor="middle" x="${middle}"`);
}

/** A circle as wide as the outline, in its middle: Graphviz has no circles in labels. */
function dotIn(outline: string): string {
  const points = [...outline.matchAll(/(-?[\d.]+),(-?[\d.]+)/g)];
  const [xs, ys] = [points.map(([, x]) => Number(x)), points.map(([, , y]) => Number(y))];
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  return `<circle cx="${halfOf(left + right)}" cy="${halfOf(top + bottom)}" r="${halfOf(right - left)}"/>`;
}

function halfOf(points: number): string {
  return String(Math.round(points * 50) / 100);
}

/** The error of a program without the package. */
function withoutGraphviz(cause: unknown): UnavailableError {
  return new UnavailableError(
    'ERR_MILLRACE_UNAVAILABLE',
    'Drawings of graphs need the package @viz-js/viz, which cannot be loaded.',
    ['Install it beside millrace: npm install @viz-js/viz', 'Or give the text of toDot() to Graphviz.'],
    { cause },
  );
}
