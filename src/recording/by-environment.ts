// `MILLRACE_TIMELINE=run.pftrace node --import millrace/timeline program.js`: records a program that does not record itself.
import { accessSync, constants, writeFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { badArgument, show } from '../core/base/arguments.js';
import { type Recording, recordTimeline } from './recording.js';

/** By the ending of the file's name. */
const FORMATS: Readonly<Record<string, (recording: Recording) => string | Uint8Array>> = {
  '.json': (recording) => recording.toChromeTrace(),
  '.pftrace': (recording) => recording.toPerfetto(),
  '.html': (recording) => recording.toHtml(),
};

/** Workers inherit --import, and their operations are on the devices of the main thread or on devices of their own. */
export function recordByEnvironment(file: string | undefined = process.env['MILLRACE_TIMELINE']): void {
  if (!file || !isMainThread) return;
  const endings = Object.keys(FORMATS);
  const format = FORMATS[extname(file)];
  if (format === undefined) {
    const message = `The name of the file for the timeline (MILLRACE_TIMELINE=${show(file)}) ends in none of ${endings.join(', ')}: the ending tells the format.`;
    throw badArgument('MILLRACE_TIMELINE', file, message, endings);
  }
  try {
    accessSync(dirname(resolve(file)), constants.W_OK);
  } catch (error) {
    const message = `The timeline cannot be written (MILLRACE_TIMELINE=${show(file)}): ${(error as Error).message}.`;
    throw badArgument('MILLRACE_TIMELINE', file, message);
  }
  const recording = recordTimeline();
  // Nothing is awaited after 'exit'. Before it, the devices tell what has finished.
  process.once('beforeExit', () => void recording.stop());
  process.once('exit', () => {
    recording[Symbol.dispose]();
    try {
      writeFileSync(file, format(recording));
    } catch (error) {
      process.stderr.write(`The timeline was not written (MILLRACE_TIMELINE=${file}): ${(error as Error).message}\n`);
    }
  });
}
