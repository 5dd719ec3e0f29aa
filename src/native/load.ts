// Loads the addon. If that fails, the error says what the user can do.
//
// The main thread loads the addon before any worker, because the library is unmapped with the last thread that loaded it.
import { realpathSync } from 'node:fs';
import { UnavailableError } from '../core/base/errors.js';
import { PROTOCOL_HASH } from '../protocol/protocol.gen.js';
import { type AddonPlace, addonPlace, cLibrary, installHelp, OLDEST_GLIBC, platformName, USE_GLIBC } from './addon-place.js';
import type { Binding } from './binding.js';

/** What the loader says where the process has reached a limit. */
const LIMITED = /Too many open files|[Cc]annot allocate memory|failed to map segment/;
/** @internal */
export const RAISE_LIMITS =
  'Raise the limits of the process (ulimit -n for open files, -v for memory, -u for threads), or use less of them.';

/** What to do about the loader's reason; nothing for reasons that are not of the system. @internal */
export function loaderHelp(reason: string): readonly string[] {
  if (!LIMITED.test(reason)) return [];
  const other = 'If its folder is mounted noexec, move it to a file system that is not.';
  return reason.includes('failed to map segment') ? [other, RAISE_LIMITS] : [RAISE_LIMITS];
}

let loaded: Binding | undefined;

/** The addon that `addonPlace` finds. Loaded once per thread. */
export function loadBinding(): Binding {
  loaded ??= load(addonPlace());
  return loaded;
}

function load({ path, origin }: AddonPlace): Binding {
  let binding: Binding;
  try {
    // Not by `require`, which gives all copies of this package in the thread one binding: it serves one.
    const addon = { exports: {} };
    process.dlopen(addon, realpathSync(path));
    binding = addon.exports as Binding;
  } catch (cause) {
    const reason = (cause as Error).message;
    const message = `The native addon at ${path} does not load on ${platformName()}: ${reason.replace(/\.$/, '')}.`;
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, helpFor(reason, origin), { cause });
  }
  const hash = binding.protocolHash();
  if (hash !== PROTOCOL_HASH) {
    const message = `The native addon at ${path} has another protocol hash (${hash}) than this package (${PROTOCOL_HASH}).`;
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, helpFor('', origin));
  }
  return binding;
}

function helpFor(reason: string, origin: AddonPlace['origin']): readonly string[] {
  const known = loaderHelp(reason);
  if (known.length > 0) return known;
  if (/loading addons is disabled/.test(reason))
    return [
      "Node's permission model needs these grants: --allow-addons --allow-worker --allow-fs-read=*, and for compilers --allow-child-process --allow-fs-write=*.",
    ];
  if (origin === 'variable') return ['MILLRACE_ADDON names this addon: unset the variable, or name one that was built for this package.'];
  // The folder of packages was installed on another system.
  if (cLibrary() === 'musl') return [USE_GLIBC];
  const library = /GLIBC_|ld-musl|ld-linux/.test(reason) ? [`The addon of a platform package needs glibc ${OLDEST_GLIBC} or newer.`] : [];
  if (/Permission denied/.test(reason))
    return ['Let this user read the file (chmod a+r), and load it from a file system that is not mounted noexec.'];
  return [...library, ...installHelp(true)];
}
