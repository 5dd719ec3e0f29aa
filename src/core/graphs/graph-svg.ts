// A graph as a drawing: SVG that Graphviz lays out, compiled to WebAssembly in the package @viz-js/viz, which users install if they draw.
// Colours are in a style sheet with a light and a dark half.
import { StateError, UnavailableError } from '../base/errors.js';
import { drawingOf, escaped, KIND_SIZE } from './graph-drawing.js';
import type { GraphEdge, GraphNode } from './graph-nodes.js';

/** What this file uses of @viz-js/viz. */
interface Graphviz {
  renderString(dot: string, options: { readonly format: 'svg' }): string;
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
export async function svgOf(
  label: string,
  nodes: readonly GraphNode[],
  edges: readonly GraphEdge[],
  load: () => Promise<{ instance(): Promise<Graphviz> }> = () => import('@viz-js/viz'),
): Promise<string> {
  const graphviz = await graphvizOf(load);
  const counted = `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`;
  const { dot, tooltips } = drawingOf(nodes, edges);
  const drawn = layOut(graphviz, dot, `graph ${label} (${counted}, ${edges.length} edges)`);
  return drawn
    .slice(drawn.indexOf('<svg'))
    .replaceAll(/<!--.*?-->\n?/gs, '')
    .replace('<svg', '<svg class="millrace-graph" role="img"')
    .replaceAll(/ font-family="[^"]*"/g, '')
    .replace(/(<svg[^>]*>)/, (head) => `${head}\n<title>${escaped(`Graph ${label} (${counted})`)}</title>\n<style>${STYLE}</style>`)
    .replace(/(<g id="graph0"[^>]*>)\n<title>.*?<\/title>/, '$1')
    .replaceAll(/<title>cluster_\w+<\/title>\n?/g, '')
    .replaceAll(/<title>(n\w+)(?:(?::\w+)?&#45;&gt;(n\w+)(?::\w+)?)?<\/title>/g, (_, name: string, to?: string) => {
      const tooltip = tooltips.get(to === undefined ? name : `${name}->${to}`);
      return tooltip === undefined ? '' : `<title>${escaped(tooltip)}</title>`;
    })
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
