// A graph as a drawing: SVG that Graphviz lays out, compiled to WebAssembly in the package @viz-js/viz, which users install if they draw.
// Colours are in a style sheet with a light and a dark half.
import { StateError, UnavailableError } from '../base/errors.js';
import { performance, setImmediate } from '../base/timers.js';
import type { CapturedNode } from './captured-node.js';
import { drawingOf, escaped, KIND_SIZE } from './graph-drawing.js';
import { edgesOf } from './graph-view.js';

const END_OF_GROUP = '</g>\n';
/** Characters of a drawing that one turn of the event loop shapes: less than half a millisecond. */
const PIECE_LENGTH = 16_384;
/** How long one turn writes the text for Graphviz. */
const WRITE_MS = 0.5;

/** Lays out a text for Graphviz as SVG. Its parts, or why there is none. Rejects if the package cannot be loaded. */
export type LayOut = (dot: AsyncIterable<string>) => AsyncIterable<string | { readonly cause: unknown }>;

let layOut: LayOut = async function* (dot) {
  const graphviz = await (await import('@viz-js/viz')).instance();
  let text = '';
  for await (const part of dot) text += part;
  try {
    yield graphviz.renderString(text, { format: 'svg' });
  } catch (cause) {
    yield { cause };
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
export async function svgOf(label: string, nodes: readonly CapturedNode[]): Promise<string> {
  const counted = `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`;
  const { dot, tooltips } = drawingOf(nodes);
  let drawing = '';
  for await (const part of wholeGroups(laidOut(partsOf(dot), () => `graph ${label} (${counted}, ${edgesOf(nodes).length} edges)`))) {
    const isFirst = drawing === '';
    drawing += isFirst ? headed(shaped(part.slice(part.indexOf('<svg')), tooltips), `Graph ${label} (${counted})`) : shaped(part, tooltips);
  }
  return drawing;
}

/** The text for Graphviz: a large one takes several turns of the event loop. */
async function* partsOf(dot: Iterable<string>): AsyncGenerator<string> {
  let part = '';
  let endMs = performance.now() + WRITE_MS;
  for (const lines of dot) {
    part += lines;
    if (performance.now() < endMs) continue;
    yield part;
    part = '';
    await new Promise(setImmediate);
    endMs = performance.now() + WRITE_MS;
  }
  yield part;
}

/** The parts of a drawing, each of whole nodes, edges and frames. A large drawing takes several turns of the event loop. */
async function* wholeGroups(drawn: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of drawn) {
    for (let from = 0; from < text.length; from += PIECE_LENGTH) {
      // One turn of the event loop may receive several texts.
      await new Promise(setImmediate);
      rest += text.slice(from, from + PIECE_LENGTH);
      const end = rest.lastIndexOf(END_OF_GROUP) + END_OF_GROUP.length;
      if (end < END_OF_GROUP.length) continue;
      yield rest.slice(0, end);
      rest = rest.slice(end);
    }
  }
  yield rest;
}

function headed(svg: string, title: string): string {
  return svg
    .replace('<svg', '<svg class="millrace-graph" role="img"')
    .replace(/(<svg[^>]*>)/, (head) => `${head}\n<title>${escaped(title)}</title>\n<style>${STYLE}</style>`)
    .replace(/(<g id="graph0"[^>]*>)\n<title>.*?<\/title>/, '$1');
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

async function* laidOut(dot: AsyncIterable<string>, what: () => string): AsyncGenerator<string> {
  const pieces = layOut(dot)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await pieces.next().catch((cause: unknown) => {
        throw withoutGraphviz(cause);
      });
      if (done === true) return;
      if (typeof value === 'string') yield value;
      else throw notLaidOut(what(), value.cause);
    }
  } finally {
    await pieces.return?.();
  }
}

/** WebAssembly has less memory than the process. */
function notLaidOut(what: string, cause: unknown): StateError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StateError('ERR_MILLRACE_STATE', `Graphviz cannot lay out ${what}: ${reason}`, { cause });
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
