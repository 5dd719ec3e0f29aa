// What a program is told where there is no addon: in an installed package, which is a copy of the bundles, and in a clone.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addonPlace, cLibrary, OLDEST_GLIBC, platformPackage, VERSION } from '../../../src/native/addon-place.js';
import { runChild } from '../../support/child.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const NAME = '@millrace/linux-x64-gnu';
const BUILD = [
  'Build it in the folder of the clone: npm run build',
  'That needs cmake, make and a C++20 compiler (on Debian or Ubuntu: apt-get install -y cmake g++ make).',
];
const INSTALL = `Install it: npm install ${NAME}@${VERSION}`;
const LEFT_OUT = 'Package managers leave it out with --omit=optional, and where node_modules was made on another system.';
const VARIABLE = 'Or name a built one in the environment variable MILLRACE_ADDON.';
const TESTING = 'Test devices of millrace/testing work here.';

let installed: string;
let clone: string;
beforeAll(() => {
  mkdirSync(join(root, 'build'), { recursive: true });
  installed = mkdtempSync(join(root, 'build/installed-'));
  clone = join(installed, 'clone');
  mkdirSync(join(installed, 'dist/testing'), { recursive: true });
  const shared = readdirSync(join(root, 'dist')).filter((name) => /^shared-.*\.cjs$/.test(name));
  const named = ['', 'testing/'].flatMap((folder) => ['index.js', 'index.cjs', 'library.cjs'].map((name) => `${folder}${name}`));
  for (const file of [...named, 'package-identity', ...shared]) cpSync(join(root, 'dist', file), join(installed, 'dist', file));
  writeFileSync(join(installed, 'package.json'), JSON.stringify({ type: 'module', version: VERSION }));
  cpSync(join(installed, 'dist'), join(clone, 'dist'), { recursive: true });
  for (const folder of ['native/addon', 'node_modules/cmake-js']) mkdirSync(join(clone, folder), { recursive: true });
  writeFileSync(join(clone, 'native/addon/addon.cpp'), '');
});
afterAll(() => rmSync(installed, { recursive: true }));

/**
 * The lines of the error with which `openDevice` rejects on each of the systems: the message, then what helps. A test device must work there,
 * too.
 */
async function onSystems(folder: string, before = ''): Promise<readonly (readonly string[])[]> {
  const { stdout, stderr } = await runChild(
    `${before}
    const { openDevice } = await import(${JSON.stringify(join(folder, 'dist/index.js'))});
    const { createTestClock, createTestDevice } = await import(${JSON.stringify(join(folder, 'dist/testing/index.js'))});
    const glibc = process.report.getReport();
    const told = [];
    for (const [platform, arch, header] of [
      ['linux', 'x64', { glibcVersionRuntime: '2.36' }], ['linux', 'arm64', { glibcVersionRuntime: '2.31' }], ['linux', 'x64', {}],
      ['linux', 'riscv64', { glibcVersionRuntime: '2.39' }], ['darwin', 'arm64', {}], ['win32', 'x64', {}],
    ]) {
      Object.defineProperty(process, 'platform', { value: platform });
      Object.defineProperty(process, 'arch', { value: arch });
      process.report.getReport = () => ({ header });
      const { name, message } = await openDevice('cpu').catch((error) => error);
      told.push(name === 'UnavailableError' ? message.split('\\n  ') : [name, message]);
      const clock = createTestClock();
      const device = createTestDevice({ clock });
      const x = device.full(3, 7);
      await clock.run(async () => { if ((await x.read())[2] !== 7) throw new Error('no 7'); });
    }
    console.log(JSON.stringify(told));`,
    { MILLRACE_ADDON: '' },
  );
  expect(stderr).toBe('');
  return JSON.parse(stdout) as string[][];
}

test('an installed package without its platform package names the system, the package and the command that installs it', async () => {
  const nothing = (where: string, what: string): string =>
    `Millrace has no devices on ${where}: CUDA devices and the CPU device need ${what} on x64 or arm64.`;
  const from = `looked for from ${installed}/`;
  const elsewhere = ['Run the program on Linux, for example in a container or in WSL 2.', TESTING];
  expect(await onSystems(installed)).toEqual([
    [
      `The native addon for linux x64, glibc 2.36 is not installed: it is not in the package ${NAME}, ${from}.`,
      INSTALL,
      LEFT_OUT,
      VARIABLE,
    ],
    [
      `The native addon for linux arm64, glibc 2.31 is not installed: it is not in the package @millrace/linux-arm64-gnu, ${from}.`,
      INSTALL.replace('x64', 'arm64'),
      LEFT_OUT,
      VARIABLE,
    ],
    [
      nothing('linux x64, musl', 'Linux with glibc'),
      'Use a system or an image with glibc, such as node:22-slim in place of node:22-alpine.',
      TESTING,
    ],
    [nothing('linux riscv64, glibc 2.39', 'Linux'), 'Run the program on Linux, for example in a container or in WSL 2.', TESTING],
    [nothing('darwin arm64', 'Linux'), ...elsewhere],
    [nothing('win32 x64', 'Linux'), ...elsewhere],
  ]);
});

test('a clone without its build says how to build it', async () => {
  const [x64] = await onSystems(clone);
  expect(x64).toEqual([
    `The native addon for linux x64, glibc 2.36 is not installed: it is not in ${clone}/build/Release/millrace.node, nor in the package ${NAME}.`,
    ...BUILD,
    VARIABLE,
  ]);
});

test('an addon that does not load or belongs to another release says how to get the right one, by where it came from', async () => {
  const packaged = join(installed, 'node_modules', NAME);
  mkdirSync(packaged, { recursive: true });
  writeFileSync(join(packaged, 'package.json'), JSON.stringify({ name: NAME, version: '0.0.9', main: 'millrace.node' }));
  const tell = async (before: string, folder = installed): Promise<readonly string[]> => {
    return (await onSystems(folder, before))[0] ?? [];
  };
  const path = join(packaged, 'millrace.node');
  // npm leaves the files of a package alone whose version is right.
  const again = INSTALL.replace('Install it: ', `Install it again: rm -r ${packaged} && `);
  writeFileSync(path, 'not an addon');
  expect(await tell('')).toEqual([`The native addon at ${path} does not load on linux x64, glibc 2.36: ${path}: file too short.`, again]);
  const old = `process.dlopen = () => { throw new Error("libc.so.6: version \`GLIBC_2.28' not found"); };`;
  expect(await tell(old)).toContain(`The addon of a platform package needs glibc ${OLDEST_GLIBC} or newer.`);
  const other = `process.dlopen = (addon) => { addon.exports.protocolHash = () => 'old'; };`;
  expect(await tell(other)).toEqual([
    expect.stringMatching(/^The native addon at .*millrace\.node has another protocol hash \(old\) than this package \(\w+\)\.$/),
    again,
  ]);
  mkdirSync(join(clone, 'build/Release'), { recursive: true });
  writeFileSync(join(clone, 'build/Release/millrace.node'), '');
  expect(await tell(other, clone)).toContain(BUILD[0]);
  const named = `process.env.MILLRACE_ADDON = ${JSON.stringify(path)}; ${other}`;
  expect(await tell(named)).toContain('MILLRACE_ADDON names this addon: unset the variable, or name one that was built for this package.');
});

test("a clone's own build comes before the platform package", () => {
  expect(addonPlace()).toEqual({ path: join(root, 'build/Release/millrace.node'), origin: 'build' });
  expect(platformPackage()).toBe(`@millrace/linux-${process.arch}-gnu`);
  expect(cLibrary()).toMatch(/^glibc 2\.\d+$/);
});

test("the version that messages name is the package's", () => {
  expect(VERSION).toBe((JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version);
});
