// Lays out drawings of graphs on a thread of their own: Graphviz takes seconds for some thousands of nodes.
// Thread: owner.
import { Worker } from 'node:worker_threads';

/** What the thread runs. */
const PROGRAM = `
const { parentPort, workerData: { module, dot } } = require('node:worker_threads');
const layOut = (graphviz) => {
  try {
    return { svg: graphviz.renderString(dot, { format: 'svg' }) };
  } catch (cause) {
    return { cause };
  }
};
void import(module).then(({ instance }) => instance()).then((graphviz) => parentPort.postMessage(layOut(graphviz)));
`;

type Answer = { readonly svg: string } | { readonly cause: unknown };

/** The `LayOut` of src/core/graphs/graph-svg.ts. */
export async function layOutInWorker(dot: string): Promise<Answer> {
  // The thread has no file, relative to which it could find the package.
  const workerData = { module: import.meta.resolve('@viz-js/viz'), dot };
  return new Promise((resolve, reject) => {
    const worker = new Worker(PROGRAM, { eval: true, execArgv: [], name: 'millrace drawing', workerData });
    worker.once('message', resolve);
    worker.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve({ cause: error });
      else reject(error);
    });
    worker.once('exit', (code) => reject(new Error(`The thread of the layout ended with exit code ${code}.`)));
  });
}
