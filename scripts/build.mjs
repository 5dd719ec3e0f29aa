// Builds the addon, then the TypeScript. npm runs this as `prepare` after `npm ci` in a clone, and before packing; it
// never runs when the published package is installed.
//
//   --native-only, --ts-only   one half
//   --with-examples            also compiles examples/ to build/js
//   --with-bench               also compiles bench/ to build/js
//   --verbose                  shows what cmake prints
//
// What earlier builds compiled from sources that no longer exist is removed. The library is not compiled again while its sources, the scripts and
// the packages are those of the build before (`npm run clean` forgets it).
//
// With MILLRACE_WERROR=1 in the environment, warnings of a first build are errors, as in the build of the native tests.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { bin, onPath, parallel, removeForeignBuild, removeStale, root, run, runQuietly } from './tools.mjs';

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

/** The compiled programs open the .cu files beside themselves. */
function copyCudaFiles(folder) {
  const files = readdirSync(join(root, folder)).filter((file) => file.endsWith('.cu'));
  for (const file of files) copyFileSync(join(root, folder, file), join(root, 'build/js', folder, file));
}

/** Changes with whatever the library is compiled and bundled from. */
function librarySources() {
  const inFolder = (folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  const files = ['src', 'page', 'scripts'].flatMap(inFolder);
  for (const file of ['tsconfig.json', 'package.json', 'package-lock.json', 'node_modules/.package-lock.json'])
    if (existsSync(join(root, file))) files.push(join(root, file));
  const hash = createHash('sha256');
  for (const file of files.toSorted()) hash.update(`${file}\0`).update(readFileSync(file)).update('\0');
  return hash.digest('hex');
}

if (!existsSync(bin('typescript/bin/tsc')) || !existsSync(bin('cmake-js/bin/cmake-js'))) {
  console.error(
    `The packages that build Millrace are not installed in ${root}: run \`npm ci\` there first. It installs them and builds everything.`,
  );
  process.exit(1);
}
const isForLinux = process.platform === 'linux';
if (!isForLinux) console.log(`There is no addon for ${process.platform}: only the TypeScript is built, and millrace/testing works.`);
if (!flags.has('--ts-only') && isForLinux) {
  checkTools();
  removeForeignBuild(join(root, 'build/cmake'));
  console.log('Compiling the addon: minutes at first, then what has changed (--verbose shows it).');
  const werror = process.env.MILLRACE_WERROR === '1' ? ['--CDMILLRACE_WERROR=ON'] : [];
  // "binary.napi_versions" in package.json makes cmake-js take the headers from node-api-headers: nothing is downloaded.
  // The target is named because the native tests are built in the same folder. Without --parallel, make runs one compiler.
  const command = ['build', '--out', 'build/cmake', '--config', 'Release', '--target', 'millrace', '--parallel', parallel];
  runQuietly(process.execPath, [bin('cmake-js/bin/cmake-js'), ...command, ...werror, '--log-level', 'error']);
}
if (!flags.has('--native-only')) {
  const tsc = bin('typescript/bin/tsc');
  const built = join(root, 'dist/built-from');
  const sources = librarySources();
  // The sources, and the files that were made of them.
  const [builtFrom, ...written] = existsSync(built) ? readFileSync(built, 'utf8').split('\n') : [];
  const isBuilt = builtFrom === sources && written.every((file) => existsSync(join(root, 'dist', file)));
  if (!isBuilt) {
    console.log('Compiling and bundling the TypeScript.');
    rmSync(built, { force: true });
    run(process.execPath, [tsc, '-p', 'tsconfig.json']);
    removeStale(join(root, 'dist'), join(root, 'src'));
  }
  const { WRITTEN_HEADERS, writeHeaders } = await import('../dist/toolchain/base/kernel-headers.js');
  rmSync(WRITTEN_HEADERS, { recursive: true, force: true });
  writeHeaders(WRITTEN_HEADERS);
  if (!isBuilt) {
    const { bundle } = await import('./bundle.mjs');
    await bundle();
    const files = readdirSync(join(root, 'dist'), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    writeFileSync(built, [sources, ...files.map((entry) => relative(join(root, 'dist'), join(entry.parentPath, entry.name)))].join('\n'));
  }
  for (const folder of ['examples', 'bench'].filter((name) => flags.has(`--with-${name}`))) {
    run(process.execPath, [tsc, '-p', folder]);
    removeStale(join(root, 'build/js', folder), join(root, folder));
  }
  if (flags.has('--with-examples')) copyCudaFiles('examples/cuda');
  // The identity of the package, which is part of the names of cached kernels.
  const { packageIdentity } = await import('../dist/toolchain/base/package-and-cpu-identity.js');
  writeFileSync(new URL('../dist/package-identity', import.meta.url), await packageIdentity());
}
