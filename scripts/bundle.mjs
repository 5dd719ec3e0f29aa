// Bundles what programs load, in place of the output of tsc: the library, a device's worker, and what the threads of a CPU pool run. The other modules stay as tsc
// wrote them, because their content is part of the names of cached kernels.
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './tools.mjs';

const DIST = join(root, 'dist');
const PACKAGES = /^[^./]/;

/** Source maps then refer to src. */
const sourceMaps = {
  name: 'source maps',
  load: {
    filter: { id: /\.js$/ },
    handler: (id) => (id.startsWith(DIST) ? { code: readFileSync(id, 'utf8'), map: readFileSync(`${id}.map`, 'utf8') } : null),
  },
};

/** A module that locates files relative to its own file must find them as without a bundle, so each gets its own URL in dist. */
const ownUrls = {
  name: 'own urls',
  transform: {
    filter: { code: 'import.meta.url' },
    handler: (code, id) => ({
      code: code.replaceAll('import.meta.url', `new URL(${JSON.stringify(relative(DIST, id))}, DIST_URL).href`),
      map: null,
    }),
  },
};

async function bundleOf(input, external, output) {
  const plan = await rolldown({ input, platform: 'node', external, plugins: [sourceMaps, ownUrls] });
  await plan.write({ sourcemap: true, sourcemapExcludeSources: true, ...output });
  await plan.close();
}

/** The URL of dist for a file of the bundle, given the URL of that file. */
const distUrl = (fileName, url) =>
  `const DIST_URL = new URL(${JSON.stringify(`${relative(dirname(fileName), '.') || '.'}/`)}, ${url}).href;`;

export async function bundle() {
  // Node finds, reads and links each module of an import: 350 of them take 230 ms, these two files and the code that they share 60 ms.
  await bundleOf({ index: join(DIST, 'index.js'), 'testing/index': join(DIST, 'testing/index.js') }, PACKAGES, {
    dir: DIST,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'shared-[hash].js',
    banner: ({ fileName }) => distUrl(fileName, 'import.meta.url'),
  });
  // CommonJS files. When a worker is terminated while Node reads an ES module, the descriptor of the module's file stays open.
  // Node reads a CommonJS module in one synchronous call, which `terminate` cannot interrupt. Packages are part of the files. What
  // builds need is a file of its own, which the first build loads: it is nineteen twentieths of the code.
  for (const worker of ['workers/device-worker', 'workers/cpu-task']) {
    await bundleOf({ [worker]: join(DIST, `${worker}.js`) }, [], {
      dir: DIST,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: 'workers/[name].cjs',
      banner: ({ fileName }) => `'use strict'; ${distUrl(fileName, "require('node:url').pathToFileURL(__filename)")}`,
    });
    for (const end of ['js', 'js.map', 'd.ts', 'd.ts.map']) rmSync(join(DIST, `${worker}.${end}`), { force: true });
  }
}
