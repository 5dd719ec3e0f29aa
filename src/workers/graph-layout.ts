// Lays out drawings of graphs on a thread of their own: Graphviz takes seconds for some thousands of nodes.
// Thread: owner.
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

/**
 * What the thread runs: it takes the parts of the text, and from the end of the text (null) on gives one piece of the drawing for each message.
 */
const PROGRAM = `
const { parentPort, workerData: { module, pieceLength } } = require('node:worker_threads');
let dot = '';
let svg;
let from = 0;
const layOut = (graphviz) => {
  try {
    svg = graphviz.renderString(dot, { format: 'svg' });
    give();
  } catch (cause) {
    parentPort.postMessage({ cause });
  }
};
const give = () => {
  parentPort.postMessage(from < svg.length ? svg.slice(from, from += pieceLength) : null);
};
parentPort.on('message', (part) => {
  if (svg !== undefined) give();
  else if (part === null) void require(module).instance().then(layOut);
  else dot += part;
});
`;

type Piece = string | { readonly cause: unknown };

/** The `LayOut` of src/core/graphs/graph-svg.ts. */
export async function* layOutInWorker(dot: AsyncIterable<string>): AsyncGenerator<Piece> {
  // The thread has no file, relative to which it could find the package.
  const workerData = { module: createRequire(import.meta.url).resolve('@viz-js/viz'), pieceLength: 16_384 };
  const worker = new Worker(PROGRAM, { eval: true, execArgv: [], name: 'millrace drawing', workerData });
  const ended = new AbortController();
  worker.once('exit', (code) => ended.abort(new Error(`The thread of the layout ended with exit code ${code}.`)));
  // An error that comes while no piece is awaited.
  worker.on('error', (error) => ended.abort(error));
  const next = (): Promise<Piece | null> => once(worker, 'message', { signal: ended.signal }).then(([piece]) => piece as Piece | null);
  try {
    for await (const part of dot) worker.postMessage(part);
    worker.postMessage(null);
    for (let piece = await next(); piece !== null; piece = await next()) {
      yield piece;
      if (typeof piece !== 'string') return;
      worker.postMessage(null);
    }
  } catch (thrown) {
    const error = thrown instanceof Error && thrown.name === 'AbortError' ? thrown.cause : thrown;
    if ((error as NodeJS.ErrnoException).code !== 'ERR_WORKER_OUT_OF_MEMORY') throw error;
    yield { cause: error };
  } finally {
    void worker.terminate();
  }
}
