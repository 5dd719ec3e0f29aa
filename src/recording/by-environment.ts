// `MILLRACE_TIMELINE=run.json node --import millrace/timeline program.js`: records a program that does not record itself.
import { writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { recordTimeline } from './recording.js';

/** Workers inherit --import, and their operations are on the devices of the main thread or on devices of their own. */
export function recordByEnvironment(file: string | undefined = process.env['MILLRACE_TIMELINE']): void {
  if (!file || !isMainThread) return;
  const recording = recordTimeline();
  // Nothing is awaited after 'exit'. Before it, the devices tell what has finished.
  process.once('beforeExit', () => void recording.stop());
  process.once('exit', () => {
    recording[Symbol.dispose]();
    try {
      writeFileSync(file, recording.toChromeTrace());
    } catch (error) {
      process.stderr.write(`The timeline was not written (MILLRACE_TIMELINE=${file}): ${(error as Error).message}\n`);
    }
  });
}
