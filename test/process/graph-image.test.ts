// docs/images/graph.svg is what the program of docs/graphs.md draws, and drawing without the package of Graphviz says what to install.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

function runNode(...args: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 25_000 });
  return { status, stdout, stderr };
}

test('docs/images/graph.svg is current', () => {
  expect(runNode(join(root, 'scripts/graph-image.mjs'), '--check')).toEqual({ status: 0, stdout: '', stderr: '' });
});

test('without @viz-js/viz, toSvg rejects with an UnavailableError, and the graph is as usable as before', () => {
  const hide = `import Module from 'node:module'; const own = Module._resolveFilename;
    Module._resolveFilename = (name, ...rest) => own(name === '@viz-js/viz' ? 'a-package-that-nobody-installed' : name, ...rest);`;
  const program = `
    import { openDevice } from 'millrace';
    const device = await openDevice('cpu');
    const x = device.zeros(4);
    const graph = device.stream.capture((s) => void s.fill(x, 7));
    const error = await graph.toSvg().catch((reason) => reason);
    console.log(error.name, error.code, error.help[0], error.cause.code);
    graph.launch();
    console.log(graph.toDot().split('\\n').length, (await x.read())[3]);
    await device.close();
  `;
  const ran = runNode('--import', `data:text/javascript,${encodeURIComponent(hide)}`, '--input-type=module', '--eval', program);
  expect(ran).toEqual({
    status: 0,
    stdout: 'UnavailableError ERR_MILLRACE_UNAVAILABLE Install it beside millrace: npm install @viz-js/viz MODULE_NOT_FOUND\n9 7\n',
    stderr: '',
  });
});
