// Makes the packages of a release in build/packages from what was built: `millrace`, one with the addon for each platform
// (docs/decisions/0046), and `create-millrace`. Arguments name some of them: main, create, linux-x64-gnu, linux-arm64-gnu. The addon for another processor is built with the
// cross compiler of Debian (g++-aarch64-linux-gnu). `--operations=bool` builds kernels of operations for these element types only, which tests use.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { joinDeclarations } from './declarations.mjs';
import { writeShippedImages } from './shipped-images.mjs';
import { bin, onPath, parallel, removeForeignBuild, root, run, runQuietly } from './tools.mjs';

const OUT = join(root, 'build/packages');
const PLATFORMS = [
  { name: 'linux-x64-gnu', cpu: 'x64', processor: 'x86_64' },
  { name: 'linux-arm64-gnu', cpu: 'arm64', processor: 'aarch64' },
];
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { version, license, author, engines, repository, homepage, bugs } = manifest;
const nameOf = (platform) => `@millrace/${platform.name}`;

/** Writes a package's folder with the given texts, and packs it. */
function pack(name, files) {
  const folder = join(root, 'build/package', name);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), typeof text === 'string' ? text : `${JSON.stringify(text, undefined, 2)}\n`);
  }
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', OUT], { cwd: folder });
}

/** Links to files that only the repository has. */
function withAddresses(text) {
  return text.replaceAll(/\]\((?!https?:|#)([^)]+)\)/g, `](${homepage.replace(/#.*/, '')}/blob/v${version}/$1)`);
}

function packMain() {
  const folder = join(root, 'build/package/main');
  rmSync(folder, { recursive: true, force: true });
  const listed = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8' });
  if (listed.status !== 0) throw new Error(`npm pack: ${listed.stderr}`);
  for (const { path } of JSON.parse(listed.stdout)[0].files) cpSync(join(root, path), join(folder, path));
  const entries = ['', 'collectives/', 'ops/', 'queue/', 'recording/', 'testing/'].map((folder) => `${folder}index.d.ts`);
  const declarations = joinDeclarations(join(root, 'dist'), entries);
  // A clone is not published, has scripts and the site's workspace, and depends on no platform package, which need not exist yet.
  const {
    private: _private,
    workspaces: _workspaces,
    scripts: _scripts,
    devDependencies: _tools,
    files: _files,
    binary: _binary,
    ...published
  } = manifest;
  pack('main', {
    ...Object.fromEntries([...declarations].map(([file, text]) => [`dist/${file}`, text])),
    // The same for `require`.
    ...Object.fromEntries(
      [...declarations].map(([file, text]) => [`dist/${file.replace(/ts$/, 'cts')}`, text.replaceAll(/(from '\..*)\.js'/g, "$1.cjs'")]),
    ),
    'README.md': withAddresses(readFileSync(join(root, 'README.md'), 'utf8')),
    'package.json': { ...published, optionalDependencies: Object.fromEntries(PLATFORMS.map((one) => [nameOf(one), version])) },
  });
}

/** The templates of projects: they need nothing that is built. */
function packCreate() {
  const folder = join(root, 'build/package/create');
  rmSync(folder, { recursive: true, force: true });
  cpSync(join(root, 'create-millrace'), folder, { recursive: true });
  const { private: _private, ...published } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  pack('create', { 'package.json': { ...published, version, repository, homepage, bugs } });
}

async function packPlatform(platform) {
  const { name, cpu, processor } = platform;
  const folder = join(root, 'build/package', name);
  rmSync(folder, { recursive: true, force: true });
  const build = process.arch === cpu ? join(root, 'build/cmake') : crossBuild(name, processor);
  runQuietly('cmake', ['--build', build, '--target', 'millrace_portable', '--parallel', parallel]);
  cpSync(join(build, 'portable/millrace.node'), join(folder, 'millrace.node'));
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
  await writeShippedImages(folder, cpu, dtypes);
  const description = `The native addon of millrace for Linux ${cpu} with glibc 2.28 or newer.`;
  pack(name, {
    'README.md': `# ${nameOf(platform)}\n\n${description} The package [millrace](${homepage}) installs it.\n`,
    'package.json': {
      ...{ name: nameOf(platform), version, description, license, author, repository, homepage, bugs, engines },
      // Yarn keeps other packages in archives, from which no library loads.
      ...{
        type: 'commonjs',
        main: 'millrace.node',
        os: ['linux'],
        cpu: [cpu],
        libc: ['glibc'],
        preferUnplugged: true,
        publishConfig: { access: 'public' },
      },
    },
  });
}

/** Configures a build for another processor, and gives its folder. */
function crossBuild(name, processor) {
  const compiler = onPath(`${processor}-linux-gnu-g++`);
  if (!compiler) {
    const help = `on Debian: apt-get install -y g++-${processor.replace('_', '-')}-linux-gnu`;
    console.error(`The addon for ${processor} cannot be built here: there is no ${processor}-linux-gnu-g++ (${help}).`);
    process.exit(1);
  }
  const build = join(root, 'build', `cmake-${name}`);
  const cross = ['-DCMAKE_SYSTEM_NAME=Linux', `-DCMAKE_SYSTEM_PROCESSOR=${processor}`, `-DCMAKE_CXX_COMPILER=${compiler}`];
  const node = ['-DCMAKE_JS_VERSION=package', `-DCMAKE_JS_INC=${bin('node-api-headers/include')};${bin('node-addon-api')}`];
  const generator = onPath('ninja') ? ['-G', 'Ninja'] : [];
  removeForeignBuild(build);
  runQuietly('cmake', ['-S', root, '-B', build, ...generator, ...cross, ...node]);
  return build;
}

const [asked, options] = [process.argv.slice(2).filter((one) => !one.startsWith('--')), process.argv.filter((one) => one.startsWith('--'))];
const dtypes = options
  .find((one) => one.startsWith('--operations='))
  ?.slice('--operations='.length)
  .split(',');
const known = ['main', 'create', ...PLATFORMS.map(({ name }) => name)];
const strange = asked.find((name) => !known.includes(name));
if (strange !== undefined) {
  console.error(`There is no package ${strange}; there are ${known.join(', ')}.`);
  process.exit(1);
}
const isAsked = (name) => asked.length === 0 || asked.includes(name);
mkdirSync(OUT, { recursive: true });
if (isAsked('main')) packMain();
if (isAsked('create')) packCreate();
for (const platform of PLATFORMS) if (isAsked(platform.name)) await packPlatform(platform);
