// Where the addon lies: named by MILLRACE_ADDON, built in a clone, or in the package of this platform. And why there is none.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UnavailableError } from '../core/base/errors.js';

/** This package's version. Platform packages have the same. */
export const VERSION = '0.1.0';
/** The systems that have a platform package: the first name is Node's platform and architecture. */
const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': '@millrace/linux-x64-gnu',
  'linux-arm64': '@millrace/linux-arm64-gnu',
};
export const USE_GLIBC = 'Use a system or an image with glibc, such as node:22-slim in place of node:22-alpine.';
/** The platform packages' file of images of operations, which scripts/package.mjs writes. */
export const SHIPPED_OPERATIONS = 'operations.images';
/** The oldest glibc that loads the addon of a platform package: that of Node's own releases. */
export const OLDEST_GLIBC = '2.28';

export interface AddonPlace {
  readonly path: string;
  /** 'variable': MILLRACE_ADDON. 'build': built in this clone. 'package': of the platform package. */
  readonly origin: 'variable' | 'build' | 'package';
}

/** Not constants: the code of a bundle may have no URL, and only the addon needs one. */
const inRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Throws an UnavailableError that says why there is no addon and how to install one. */
export function addonPlace(): AddonPlace {
  const named = process.env['MILLRACE_ADDON'];
  if (named) {
    if (existsSync(named)) return { path: named, origin: 'variable' };
    throw unavailable(`MILLRACE_ADDON names ${named}, which does not exist.`, ['Name an addon that exists, or unset MILLRACE_ADDON.']);
  }
  const built = inRoot('build/Release/millrace.node');
  if (existsSync(built)) return { path: built, origin: 'build' };
  const name = platformPackage();
  try {
    if (name !== undefined) return { path: createRequire(import.meta.url).resolve(name), origin: 'package' };
  } catch {
    // It is not installed.
  }
  throw missing(name, built);
}

/** The file of images of operations beside the addon; undefined where there is none, and for addons that are not those of a platform package. */
export function shippedOperations(): string | undefined {
  const { path, origin } = addonPlace();
  const file = join(dirname(path), SHIPPED_OPERATIONS);
  return origin === 'package' && existsSync(file) ? file : undefined;
}

/** The package that has the addon for this system and architecture; undefined if there is none. Its C library is glibc. */
export function platformPackage(): string | undefined {
  return PACKAGES[`${process.platform}-${process.arch}`];
}

/** `glibc 2.36` for example, or `musl`; undefined on other systems than Linux. Takes milliseconds. */
export function cLibrary(): string | undefined {
  if (process.platform !== 'linux') return undefined;
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork?: boolean };
  const { excludeNetwork } = report;
  try {
    // Else the report asks for the names of hosts.
    report.excludeNetwork = true;
    const { header } = report.getReport() as unknown as { readonly header: { readonly glibcVersionRuntime?: string } };
    return header.glibcVersionRuntime ? `glibc ${header.glibcVersionRuntime}` : 'musl';
  } finally {
    if (excludeNetwork !== undefined) report.excludeNetwork = excludeNetwork;
  }
}

/** The platform in words: `linux x64, glibc 2.36`. */
export function platformName(): string {
  const library = cLibrary();
  return `${process.platform} ${process.arch}${library === undefined ? '' : `, ${library}`}`;
}

/** Throws an UnavailableError where a program that a bundler made runs without the files of this package, or with those of another version. */
export function checkPackage(): void {
  if (isClone()) return;
  const dist = new URL('../', import.meta.url);
  const place = fileURLToPath(dist);
  const help = [`Install it there: npm install millrace@${VERSION}`];
  if (!existsSync(fileURLToPath(new URL('package-identity', dist)))) {
    const shipped = 'docs/bundlers.md of the repository names what a bundled program is shipped with.';
    throw unavailable(`The package millrace, whose files a bundled program needs, is not found from ${place}.`, [...help, shipped]);
  }
  const { version } = JSON.parse(readFileSync(new URL('../package.json', dist), 'utf8')) as { readonly version: string };
  if (version === VERSION) return;
  throw unavailable(`The package at ${place} is millrace ${version}, and the bundled program has the code of ${VERSION}.`, [
    ...help,
    'Or bundle the program again, with the installed version.',
  ]);
}

/** How to get an addon that suits this package and this system. `isThere`: one that does not is installed. */
export function installHelp(isThere = false): readonly string[] {
  const build = [
    'Build it in the folder of the clone: npm run build',
    'That needs cmake, make and a C++20 compiler (on Debian or Ubuntu: apt-get install -y cmake g++ make).',
  ];
  if (isClone()) return build;
  const name = platformPackage();
  if (name === undefined) return [];
  const install = `npm install ${name}@${VERSION}`;
  // npm leaves files alone whose version is right.
  return [isThere ? `Install it again: rm -r ${dirname(addonPlace().path)} && ${install}` : `Install it: ${install}`];
}

/** Whether the addon can be built here: an installed package has neither its sources nor the tools. */
function isClone(): boolean {
  return existsSync(inRoot('native/addon/addon.cpp')) && existsSync(inRoot('node_modules/cmake-js'));
}

function missing(name: string | undefined, built: string): UnavailableError {
  if (name === undefined || cLibrary() === 'musl') {
    const what = name === undefined ? '' : ' with glibc';
    return unavailable(`Millrace has no devices on ${platformName()}: CUDA devices and the CPU device need Linux${what} on x64 or arm64.`, [
      ...(name === undefined ? ['Run the program on Linux, for example in a container or in WSL 2.'] : [USE_GLIBC]),
      'Test devices of millrace/testing work here.',
    ]);
  }
  checkPackage();
  const looked = isClone() ? `${built}, nor in the package ${name}` : `the package ${name}, looked for from ${inRoot('.')}`;
  return unavailable(`The native addon for ${platformName()} is not installed: it is not in ${looked}.`, [
    ...installHelp(),
    ...(isClone() ? [] : ['Package managers leave it out with --omit=optional, and where node_modules was made on another system.']),
    'Or name a built one in the environment variable MILLRACE_ADDON.',
  ]);
}

function unavailable(message: string, help: readonly string[]): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help);
}
