// A graph as a drawing: SVG that Graphviz lays out, compiled to WebAssembly in the package @viz-js/viz, which users install if they draw.
// Colours are in a style sheet with a light and a dark half.
import { createRequire } from 'node:module';
import type * as Viz from '@viz-js/viz';
import { StateError, UnavailableError } from '../base/errors.js';
import { performance, setImmediate } from '../base/timers.js';
import type { CapturedNode } from './captured-node.js';
import { dotOf } from './graph-dot.js';
import { edgesOf } from './graph-view.js';

/** How long one turn writes the text for Graphviz. */
const WRITE_MS = 0.5;

/** Lays out a text for Graphviz as SVG. Its parts, or why there is none. Rejects if the package cannot be loaded. */
export type LayOut = (dot: AsyncIterable<string>) => AsyncIterable<string | { readonly cause: unknown }>;

let layOut: LayOut = async function* (dot) {
  // Not by `import`: bundlers would look for the package of users who draw nothing.
  const { instance } = createRequire(import.meta.url)('@viz-js/viz') as typeof Viz;
  const graphviz = await instance();
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
  .millrace-graph .cluster text, .millrace-graph .empty text { fill: var(--muted); }
  .millrace-graph .graph > polygon { fill: var(--page); stroke: none; }
  .millrace-graph .cluster path { fill: var(--area); stroke: var(--line); }
  .millrace-graph .node path, .millrace-graph .node polygon, .millrace-graph .node ellipse { fill: var(--other); stroke: var(--edge); }
  .millrace-graph .body path { fill: var(--page); stroke: var(--edge); }
  .millrace-graph .node polyline { fill: none; stroke: var(--edge); }
  .millrace-graph .launch path { fill: var(--launch); }
  .millrace-graph .copy polygon { fill: var(--copy); }
  .millrace-graph .fill ellipse { fill: var(--fill); }
  .millrace-graph .host polygon { fill: var(--host); }
  .millrace-graph .edge path { stroke: var(--edge); }
  .millrace-graph .edge polygon { fill: var(--edge); stroke: var(--edge); }
`;

/** The drawing. Rejects with UnavailableError if the package is not installed. */
export async function svgOf(label: string, nodes: readonly CapturedNode[]): Promise<string> {
  const counted = `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}`;
  const drawn = laidOut(
    partsOf(dotOf(`Graph ${label} (${counted})`, nodes)),
    () => `graph ${label} (${counted}, ${edgesOf(nodes).length} edges)`,
  );
  let svg = '';
  for await (const part of drawn) svg += svg === '' ? headed(part) : part;
  return svg;
}

/** The first part, with the style sheet. */
function headed(part: string): string {
  const [, attributes, rest] = /<svg([^>]*>)(.*)/s.exec(part) ?? [];
  return `<svg class="millrace-graph" role="img"${attributes}\n<style>${STYLE}</style>${rest}`;
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

/** The error of a program without the package. */
function withoutGraphviz(cause: unknown): UnavailableError {
  return new UnavailableError(
    'ERR_MILLRACE_UNAVAILABLE',
    'Drawings of graphs need the package @viz-js/viz, which cannot be loaded.',
    ['Install it beside millrace: npm install @viz-js/viz', 'Or give the text of toDot() to Graphviz.'],
    { cause },
  );
}
