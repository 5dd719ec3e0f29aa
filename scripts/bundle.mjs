// Bundles what programs load, in place of the output of tsc: the library, its workers and the commands of `npx millrace`. The other modules stay as tsc
// wrote them, because their content is part of the names of cached kernels.
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './tools.mjs';

const DIST = join(root, 'dist');
/** Packages, and acorn, which is a file of this package. The encoder pbf is part of millrace/timeline: 6 kB. */
const PACKAGES = /^(?!pbf$)[^./]|\/acorn\.cjs$/;

/** Source maps then refer to src. */
const sourceMaps = {
  name: 'source maps',
  load: {
    filter: { id: /\.js$/ },
    handler: (id) => (id.startsWith(DIST) ? { code: readFileSync(id, 'utf8'), map: readFileSync(`${id}.map`, 'utf8') } : null),
  },
};

/** A module that locates files relative to its own file must find them as without a bundle, so each gets its own URL in dist. */
const ownUrls = (head = '') => ({
  name: 'own urls',
  transform: {
    filter: { code: 'import.meta.url' },
    handler: (code, id) => ({
      code: head + code.replaceAll('import.meta.url', `new URL(${JSON.stringify(relative(DIST, id))}, DIST_URL).href`),
      map: null,
    }),
  },
});

/**
 * Packages that are loaded when they are first needed: by a literal `require`, so that a bundler that puts the library into a program puts them in
 * too, and there is one copy of rxjs. Not within `try`, where rollup does not look.
 */
const literalRequires = {
  name: 'literal requires',
  transform: {
    filter: { code: 'createRequire(import.meta.url)(' },
    handler: (code, id) => ({
      code: code
        .replaceAll("createRequire(import.meta.url)('acorn')", `require('${relative(dirname(id), join(DIST, 'acorn.cjs'))}')`)
        .replaceAll(
          /createRequire\(import\.meta\.url\)\(('rxjs[^']*')\)/g,
          // An ES module of a bundle in which rxjs is not has no `require`.
          '((near, far) => { try { return near(); } catch { return far(); } })(() => require($1), () => createRequire(import.meta.url)($1))',
        ),
      map: null,
    }),
  },
};

/** What a bundle imports from another bundle. */
const otherBundles = {
  name: 'other bundles',
  resolveId: {
    filter: { id: /\/(?:index|device-builds)\.js$/ },
    handler: (id, from) =>
      from === undefined || !from.startsWith(join(DIST, 'cli'))
        ? null
        : { id: id.replace('device-builds.js', 'device-builds.cjs'), external: true },
  },
};

async function bundleOf(input, external, output, urls = ownUrls()) {
  const plan = await rolldown({ input, platform: 'node', external, plugins: [otherBundles, sourceMaps, literalRequires, urls] });
  const written = await plan.write({ sourcemap: true, sourcemapExcludeSources: true, ...output });
  await plan.close();
  for (const { moduleIds = [] } of written.output)
    for (const id of moduleIds) bundled.add(/.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]);
  return written.output;
}

/** Folders of the packages whose code is in bundles. */
const bundled = new Set();

/** Their licences ask for it. */
function writeLicences() {
  const texts = [...bundled]
    .filter(Boolean)
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
      if (file === undefined) throw new Error(`${folder} has no file with its licence.`);
      return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
    });
  const head = 'Files of this package contain code of these packages.\n';
  writeFileSync(join(DIST, 'THIRD-PARTY-LICENSES'), [head, ...texts].join(`\n${'-'.repeat(80)}\n\n`));
}

/** The URL of dist for a file of the bundle, given the URL of that file. */
const distUrl = (fileName, url) =>
  `const DIST_URL = new URL(${JSON.stringify(`${relative(dirname(fileName), '.') || '.'}/`)}, ${url}).href;`;

const PAGE = join(root, 'page');

/**
 * The page of a timeline: one file, whose policy lets a browser load nothing and run no other code than this, so labels in the data can do nothing.
 * `timelinePage` puts the data in.
 */
async function writePage() {
  const plan = await rolldown({
    input: join(PAGE, 'main.ts'),
    platform: 'browser',
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  });
  const { output } = await plan.generate({ format: 'iife', minify: true, comments: false });
  await plan.close();
  const parts = { style: readFileSync(join(PAGE, 'page.css'), 'utf8').trim(), script: output[0].code.trim() };
  // The end of an element that is written into it.
  for (const [name, text] of Object.entries(parts))
    if (text.includes(`</${name}`)) throw new Error(`The ${name} of the page would end early.`);
  const hashes = Object.entries(parts).map(([name, text]) => [
    `${name}-hash`,
    `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  ]);
  const texts = { ...parts, ...Object.fromEntries(hashes) };
  const page = readFileSync(join(PAGE, 'page.html'), 'utf8').replaceAll(/\{\{([\w-]+)\}\}/g, (mark, name) => texts[name] ?? mark);
  writeFileSync(join(DIST, 'recording/page.html'), page);
}

const COMPILER = 'compiler';

/** The compiler of kernels is loaded when the first one is defined: the import takes a sixth less time without it. */
function withLateCompiler(code) {
  const [, path] = /^const require_compiler = require\(("[^"]+")\);$/m.exec(code) ?? [];
  if (path === undefined) return code;
  return code
    .replaceAll('require_compiler.', 'require_compiler().')
    .replace(/^const require_compiler = .*$/m, `let compiler$; const require_compiler = () => (compiler$ ??= require(${path}));`);
}

export async function bundle() {
  await writePage();
  // Node finds, reads and links each module of an import: 350 of them take 230 ms, these two files and the code that they share 60 ms. The code is
  // CommonJS, which everything can load, and there is one copy of it: the ES modules give its exports their names.
  for (const old of readdirSync(DIST)) if (old.startsWith('shared-')) rmSync(join(DIST, old));
  const place = `import { DIST_URL } from ${JSON.stringify(join(root, 'scripts/package-place.mjs'))};\n`;
  const entries = Object.fromEntries(
    ['', 'collectives/', 'ops/', 'queue/', 'recording/', 'testing/'].map((folder) => [`${folder}library`, join(DIST, folder, 'index.js')]),
  );
  // The import of the library takes 4 ms less than with acorn in it.
  await bundleOf({ acorn: 'acorn' }, [], { dir: DIST, format: 'cjs', entryFileNames: '[name].cjs', minify: true, sourcemap: false });
  const library = {
    dir: DIST,
    format: 'cjs',
    exports: 'named',
    comments: false,
    entryFileNames: '[name].cjs',
    chunkFileNames: 'shared-[hash].cjs',
    // In one file: V8 inlines no function that is reached through another file's exports, and a launch would take an eighth more instructions.
    codeSplitting: {
      groups: [
        { name: 'core', test: (id) => /^(?:core|protocol)\//.test(relative(DIST, id)) },
        { name: 'language', test: (id) => /^compiler\/(?:diagnostics|language)\//.test(relative(DIST, id)) },
        { name: COMPILER, test: (id) => /^(?:cuda-cpp|compiler\/(?!definitions))/.test(relative(DIST, id)) },
      ],
    },
  };
  for (const { type, code, fileName, isEntry, name, exports } of await bundleOf(entries, PACKAGES, library, ownUrls(place))) {
    // A bundler that makes an ES module of it has no `require` there.
    if (type === 'chunk')
      writeFileSync(
        join(DIST, fileName),
        withLateCompiler(code).replaceAll(/\brequire\(("node:[\w/]+")\)/g, 'process.getBuiltinModule($1)'),
      );
    if (!isEntry) continue;
    const names = exports.toSorted().join(',\n  ');
    const index = join(DIST, dirname(name), 'index');
    // Node reads all of a CommonJS file that an ES module imports for the names of its exports. It does not look through a variable.
    writeFileSync(`${index}.cjs`, `'use strict';\nconst library = require('./library.cjs');\nmodule.exports = library;\n`);
    writeFileSync(`${index}.js`, `import library from './index.cjs';\n\nexport const {\n  ${names},\n} = library;\n`);
    rmSync(`${index}.js.map`, { force: true });
  }
  // CommonJS files. When a worker is terminated while Node reads an ES module, the descriptor of the module's file stays open.
  // Node reads a CommonJS module in one synchronous call, which `terminate` cannot interrupt. Packages are part of the files. What
  // builds need is a file of its own, which the first build loads: it is nineteen twentieths of the code.
  for (const names of [['device-worker', 'device-process', 'device-builds'], ['cpu-task'], ['machine-report']]) {
    const paths = names.map((name) => `workers/${name}`);
    await bundleOf(Object.fromEntries(paths.map((path) => [path, join(DIST, `${path}.js`)])), [], {
      dir: DIST,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: 'workers/device-[name].cjs',
      banner: ({ fileName }) => `'use strict'; ${distUrl(fileName, "require('node:url').pathToFileURL(__filename)")}`,
    });
    for (const end of ['js', 'js.map']) for (const path of paths) rmSync(join(DIST, `${path}.${end}`), { force: true });
  }
  // The commands of `npx millrace` import the library as programs do, and what builds kernels from the file of a device's worker.
  await bundleOf({ 'cli/main': join(DIST, 'cli/main.js') }, ['rxjs'], {
    dir: DIST,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: ({ isDynamicEntry, name }) => (isDynamicEntry ? 'cli/[name].js' : `cli/shared-${name}.js`),
    banner: ({ fileName }) => distUrl(fileName, 'import.meta.url'),
  });
  // A project that depends on the folder of a clone has a link to it, which a shell runs.
  chmodSync(join(DIST, 'cli/main.js'), 0o755);
  writeLicences();
}
