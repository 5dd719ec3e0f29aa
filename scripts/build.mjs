// Builds the addon, then the TypeScript. npm runs this as `prepare` after `npm ci` in a clone, and before packing; it
// never runs when the published package is installed.
//
//   --native-only, --ts-only   one half
//   --with-examples            also compiles examples/ to build/js
//   --with-bench               also compiles bench/ to build/js
//
// What earlier builds compiled from sources that no longer exist is removed.
//
// With MILLRACE_WERROR=1 in the environment, warnings of a first build are errors, as in the build of the native tests.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { bin, onPath, parallel, removeStale, root, run } from './tools.mjs';

const APT = 'apt-get install -y cmake g++ make';
const flags = new Set(process.argv.slice(2));

function stop(missing) {
  console.error(`Millrace cannot be built here: ${missing} (on Debian or Ubuntu: ${APT}).`);
  process.exit(1);
}

/** Whether the compiler builds C++20. Its standard library must have the headers, too, so accepting the option is not enough. */
function compilesCpp20(compiler) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-probe-'));
  try {
    const source = join(folder, 'probe.cpp');
    writeFileSync(source, '#include <atomic>\n#include <concepts>\n#include <span>\nint main() { return std::span<int>().size(); }\n');
    return spawnSync(compiler, ['-std=c++20', '-fsyntax-only', source], { stdio: 'ignore' }).status === 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function checkTools() {
  if (!onPath('cmake')) stop('cmake is not installed');
  if (!onPath('make', 'ninja')) stop('neither make nor ninja is installed');
  const compiler = process.env.CXX ?? onPath('c++', 'g++', 'clang++');
  if (!compiler) stop('there is no C++ compiler');
  if (!compilesCpp20(compiler)) stop(`the compiler ${compiler} does not understand C++20; GCC 11 or Clang 14 does`);
}

/**
 * Bundles a device's worker into one CommonJS file, in place of the output of tsc. When a worker is terminated while Node reads an ES module,
 * the descriptor of the module's file stays open. Node reads a CommonJS module in one synchronous call, which `terminate` cannot interrupt.
 * Names are kept, and a source map refers to src.
 */
async function bundleWorker() {
  const { build } = await import('esbuild');
  const source = join(root, 'src', 'workers', 'device-worker.ts');
  const folder = join(root, 'dist', 'workers');
  // A module that locates files relative to its own file must find them as without a bundle, so each gets its own URL in dist.
  const ownUrls = {
    name: 'own urls',
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const file = join(root, 'dist', relative(join(root, 'src'), path)).replace(/\.ts$/, '.js');
        const url = `new URL(${JSON.stringify(relative(folder, file))}, FOLDER_URL).href`;
        return { contents: text.replaceAll('import.meta.url', url), loader: 'ts', resolveDir: dirname(path) };
      });
    },
  };
  await build({
    entryPoints: [source],
    outfile: join(folder, 'device-worker.cjs'),
    bundle: true,
    format: 'cjs',
    banner: { js: "'use strict'; const FOLDER_URL = require('node:url').pathToFileURL(__filename);" },
    platform: 'node',
    target: 'node20.19',
    keepNames: true,
    sourcemap: true,
    sourcesContent: false,
    legalComments: 'inline',
    logLevel: 'warning',
    plugins: [ownUrls],
  });
  for (const end of ['js', 'js.map', 'd.ts', 'd.ts.map']) rmSync(join(folder, `device-worker.${end}`), { force: true });
}

if (!flags.has('--ts-only')) {
  checkTools();
  const werror = process.env.MILLRACE_WERROR === '1' ? ['--CDMILLRACE_WERROR=ON'] : [];
  // "binary.napi_versions" in package.json makes cmake-js take the headers from node-api-headers: nothing is downloaded.
  // The target is named because the native tests are built in the same folder. Without --parallel, make runs one compiler.
  const command = ['build', '--out', 'build/cmake', '--config', 'Release', '--target', 'millrace', '--parallel', parallel];
  run(process.execPath, [bin('cmake-js/bin/cmake-js'), ...command, ...werror, '--log-level', 'error']);
}
if (!flags.has('--native-only')) {
  const tsc = bin('typescript/bin/tsc');
  run(process.execPath, [tsc, '-p', 'tsconfig.json']);
  removeStale(join(root, 'dist'), join(root, 'src'));
  await bundleWorker();
  for (const folder of ['examples', 'bench'].filter((name) => flags.has(`--with-${name}`))) {
    run(process.execPath, [tsc, '-p', folder]);
    removeStale(join(root, 'build/js', folder), join(root, folder));
  }
  // The identity of the package, which is part of the names of cached kernels.
  const { packageIdentity } = await import('../dist/toolchain/base/identity.js');
  writeFileSync(new URL('../dist/package-identity', import.meta.url), await packageIdentity());
}
