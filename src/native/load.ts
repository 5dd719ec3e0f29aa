// Finds and loads the addon. If that fails, the error says what the user can do.
//
// The main thread loads the addon before any worker, because the library is unmapped with the last thread that loaded it.
import { existsSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UnavailableError } from '../core/base/errors.js';
import { PROTOCOL_HASH } from '../protocol/protocol.gen.js';
import type { Binding } from './binding.js';

const BUILT = fileURLToPath(new URL('../../build/Release/millrace.node', import.meta.url));

/** What the loader says where the process has reached a limit. */
const LIMITED = /Too many open files|[Cc]annot allocate memory|failed to map segment/;
/** @internal */
export const RAISE_LIMITS =
  'Raise the limits of the process (ulimit -n for open files, -v for memory, -u for threads), or use less of them.';

let loaded: Binding | undefined;

/** The addon: `MILLRACE_ADDON`, or the one built in this package. Loaded once per thread. */
export function loadBinding(): Binding {
  loaded ??= load(process.env['MILLRACE_ADDON'] ?? BUILT);
  return loaded;
}

function load(path: string): Binding {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `Millrace runs on Linux x64; this is ${process.platform} ${process.arch}.`, []);
  }
  if (!existsSync(path)) {
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `The native addon is not at ${path}.`, [
      'Build it in the package folder: npm run build',
      'That needs cmake, make and a C++20 compiler (on Debian or Ubuntu: apt-get install -y cmake g++ make).',
      'Or name a built one in the environment variable MILLRACE_ADDON.',
    ]);
  }
  let binding: Binding;
  try {
    // Not by `require`, which gives all copies of this package in the thread one binding: it serves one.
    const addon = { exports: {} };
    process.dlopen(addon, realpathSync(path));
    binding = addon.exports as Binding;
  } catch (cause) {
    const reason = (cause as Error).message;
    const help = LIMITED.test(reason)
      ? [RAISE_LIMITS]
      : ['Build it on this machine: npm run build', 'An addon built for another system or C library does not load.'];
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', `The native addon at ${path} does not load: ${reason}.`, help, { cause });
  }
  const hash = binding.protocolHash();
  if (hash !== PROTOCOL_HASH) {
    const message = `The native addon at ${path} has another protocol hash (${hash}) than this package (${PROTOCOL_HASH}).`;
    throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, ['Build it again: npm run build']);
  }
  return binding;
}
