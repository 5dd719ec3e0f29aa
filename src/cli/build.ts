// `millrace build`: imports modules and builds the kernels that they define, for machines without a compiler.
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { UnavailableError } from '../core/base/errors.js';
import { listDefinitions } from '../core/kernels/definitions.js';
import { loadBinding } from '../native/load.js';
import type { Nvrtc } from '../toolchain/compilers/nvrtc-or-nvcc.js';
import type { AheadResult } from '../toolchain/images/build-ahead.js';
import { nvrtcOf } from '../workers/nvrtc.js';
import { builds } from './builds.js';
import { importModules } from './import-modules.js';

/** In one piece, the bundler would replace it. */
const MODULE_URL = ['import', 'meta', 'url'].join('.');

export interface BuildCommand {
  readonly modules: readonly string[];
  readonly out: string;
  /** Such as `cpu:x86-64-v3,sm_80`. */
  readonly targets: string;
}

/**
 * Prints a line for each target and each kernel that it lacks. Resolves to the exit code. Rejects with a MillraceError for modules that cannot
 * be imported and for compilers that are missing, and with an ArgumentError for targets that nothing builds for.
 */
export async function build({ modules, out, targets: list }: BuildCommand, print: (line: string) => void): Promise<number> {
  const { buildAhead, checkImages, imageTargets } = await builds();
  const targets = imageTargets(list);
  const definitions = listDefinitions();
  const paths = modules.map((module) => resolve(module));
  const code = await importModules(paths);
  if (code !== undefined) return code;
  if (definitions.length === 0) {
    const message = `${modules.join(', ')}: no kernel is defined when the module is imported. Define kernels at the top level of a module.`;
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, []);
  }
  const results: AheadResult[] = [];
  const folder = resolve(out);
  await buildAhead({ definitions, targets, folder, nvrtc: ownNvrtc(), done: (result) => results.push(result) });
  for (const { name } of targets) {
    const own = results.filter(({ target }) => target === name);
    const failed = own.filter(({ error }) => error !== undefined);
    const leftOut = own.filter(({ isLeftOut }) => isLeftOut);
    print(`${name.padEnd(16)} ${own.filter(isBuilt).length} built${failed.length > 0 ? `, ${failed.length} failed` : ''}`);
    for (const { kernel } of leftOut)
      print(`  ${kernel}: left out, because it launches kernels, and PTX is not linked with the device runtime`);
    for (const { kernel, error } of failed) print(`  ${kernel}: ${(error as Error).message}`);
  }
  if (!results.some(isBuilt)) {
    print(`Nothing was built, so nothing was written to ${folder}.`);
    return 1;
  }
  const between = relative(dirname(paths[0]!), folder);
  print(`Written to ${folder}. Use it, in a file beside ${modules[0]}:`);
  const place = isCommonJs(paths[0]!) ? `__dirname + ${JSON.stringify(`/${between}`)}` : `new URL('${urlOf(between)}', ${MODULE_URL})`;
  print(`  openDevice('auto', { images: ${place} })`);
  print(`Or: MILLRACE_IMAGES=${folder}`);
  try {
    checkImages(folder);
  } catch (error) {
    print(`As it is now: ${(error as Error).message}`);
  }
  return results.some(({ error }) => error !== undefined) ? 1 : 0;
}

function isBuilt({ error, isLeftOut }: AheadResult): boolean {
  return error === undefined && isLeftOut !== true;
}

/** By the rule of Node and TypeScript: the file's ending, else the `type` of the nearest package.json. */
function isCommonJs(path: string): boolean {
  const [, letter] = /\.([cm])[jt]s$/.exec(path) ?? [];
  if (letter !== undefined) return letter === 'c';
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { readonly type?: unknown }).type !== 'module';
    } catch {
      if (folder === dirname(folder)) return true;
    }
  }
}

/** The path as a URL, for a text in JavaScript's quotes. */
function urlOf(path: string): string {
  const url = path.split('/').map(encodeURIComponent).join('/').replaceAll("'", '%27');
  return url.startsWith('.') ? url : `./${url}`;
}

/** Without the addon, or without NVRTC, nvcc builds. */
function ownNvrtc(): Nvrtc | undefined {
  try {
    return nvrtcOf(loadBinding(), 0);
  } catch {
    return undefined;
  }
}
