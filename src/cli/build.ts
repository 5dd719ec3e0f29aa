// `millrace build`: imports modules and builds the kernels that they define, for machines without a compiler.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UnavailableError } from '../core/base/errors.js';
import { listDefinitions } from '../core/kernels/definitions.js';
import { loadBinding } from '../native/load.js';
import type { Nvrtc } from '../toolchain/compilers/nvrtc-or-nvcc.js';
import type { AheadResult } from '../toolchain/images/build-ahead.js';
import { nvrtcOf } from '../workers/nvrtc.js';
import { builds } from './builds.js';

export interface BuildCommand {
  readonly modules: readonly string[];
  readonly out: string;
  /** Such as `cpu:x86-64-v3,sm_80`. */
  readonly targets: string;
}

/** Prints a line for each target and each kernel that it lacks. Resolves to the exit code. Rejects with a MillraceError for bad arguments. */
export async function build({ modules, out, targets: list }: BuildCommand, print: (line: string) => void): Promise<number> {
  const { buildAhead, imageTargets } = await builds();
  const targets = imageTargets(list);
  const definitions = listDefinitions();
  for (const module of modules) await load(resolve(module));
  if (definitions.length === 0) {
    print(`${modules.join(', ')}: no kernel is defined when the module is imported. Define kernels at the top level of a module.`);
    return 1;
  }
  const results: AheadResult[] = [];
  const folder = resolve(out);
  await buildAhead({ definitions, targets, folder, nvrtc: ownNvrtc(), done: (result) => results.push(result) });
  for (const { name } of targets) {
    const own = results.filter(({ target }) => target === name);
    const failed = own.filter(({ error }) => error !== undefined);
    const leftOut = own.filter(({ isLeftOut }) => isLeftOut);
    const built = own.length - failed.length - leftOut.length;
    print(`${name.padEnd(16)} ${built} built${failed.length > 0 ? `, ${failed.length} failed` : ''}`);
    for (const { kernel } of leftOut)
      print(`  ${kernel}: left out, because it launches kernels, and PTX is not linked with the device runtime`);
    for (const { kernel, error } of failed) print(`  ${kernel}: ${(error as Error).message}`);
  }
  print(`Written to ${folder}. Use it: openDevice('auto', { images: '${out}' }), or MILLRACE_IMAGES=${folder}.`);
  return results.some(({ error }) => error !== undefined) ? 1 : 0;
}

/** Without the addon, or without NVRTC, nvcc builds. */
function ownNvrtc(): Nvrtc | undefined {
  try {
    return nvrtcOf(loadBinding(), 0);
  } catch {
    return undefined;
  }
}

async function load(path: string): Promise<void> {
  const { href } = pathToFileURL(path);
  try {
    await import(href);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_MODULE_NOT_FOUND' && (error as Error).message.includes(path)) throw unavailable(`There is no file ${path}.`, []);
    if (code !== 'ERR_UNKNOWN_FILE_EXTENSION') throw error;
    registerTsx(path);
    await import(href);
  }
}

/** This Node does not read TypeScript, so the project's tsx does. */
function registerTsx(path: string): void {
  const require = createRequire(join(process.cwd(), 'package.json'));
  try {
    (require('tsx/esm/api') as { register(): void }).register();
  } catch (cause) {
    throw unavailable(
      `Node ${process.version} does not read TypeScript, as ${path} is.`,
      ['Install tsx in the project: npm install --save-dev tsx.'],
      cause,
    );
  }
}

function unavailable(message: string, help: readonly string[], cause?: unknown): UnavailableError {
  return new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, help, cause === undefined ? {} : { cause });
}
