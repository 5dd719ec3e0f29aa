// The command line, and what is checked before any work begins.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import type { DeviceSpec } from 'millrace';
import type { Photo } from './pipeline.js';
import { messageOf, parseOrRefuse, Refusal } from '../command-line.js';

const HELP = `Usage: photos [--in] FOLDER [options]

Blurs, sharpens and outlines every PNG and JPEG of a folder and counts its brightnesses, on a GPU or on the CPU device.

  --in FOLDER       the photos (or as the only argument)
  --out FOLDER      where the results go (default: out/photos)
  --device NAME     auto, cpu, cuda or cuda:N (default: auto, a GPU if there is one)
  --repeat N        go through the folder N times (default: 1)
  --timeline FILE   what ran when: a page (.html), or a trace for Perfetto (.pftrace) or Chrome (.json)
                    (default: timeline.html among the results)
  --help

Exit code: 0 all written, 2 some photos could not be read and were skipped, 1 anything else, 130 interrupted.
`;

export interface Options {
  readonly inFolder: string;
  readonly outFolder: string;
  readonly timelineFile: string;
  readonly device: DeviceSpec;
  readonly repeat: number;
}

const OPTIONS = {
  in: { type: 'string' },
  out: { type: 'string', default: 'out/photos' },
  device: { type: 'string', default: 'auto' },
  repeat: { type: 'string', default: '1' },
  timeline: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

export function readOptions(args: readonly string[]): Options {
  const { values, positionals } = parseOrRefuse(HELP, { args: [...args], allowPositionals: true, options: OPTIONS });
  const folders = [...(values.in === undefined ? [] : [values.in]), ...positionals];
  const [inFolder] = folders;
  if (inFolder === undefined || folders.length > 1) throw new Refusal('Name one folder of photos; --help says how.');
  const repeat = Number(values.repeat);
  if (!Number.isSafeInteger(repeat) || repeat < 1) throw new Refusal(`--repeat ${values.repeat} is not a whole number of at least 1.`);
  const outFolder = resolve(values.out);
  return {
    inFolder: resolve(inFolder),
    outFolder,
    timelineFile: values.timeline === undefined ? join(outFolder, 'timeline.html') : resolve(values.timeline),
    // A name that no device has is refused by openDevice.
    device: values.device as DeviceSpec,
    repeat,
  };
}

const PHOTO = /\.(?:png|jpe?g)$/i;

/** The photos of a folder by name. Two that differ only in their extension keep it in the names of their results. */
export async function listPhotos(folder: string): Promise<readonly Photo[]> {
  const entries = await readdir(folder).catch((error: unknown) => {
    throw new Refusal(`The folder ${folder} cannot be read: ${messageOf(error)}`);
  });
  const files = entries.filter((entry) => PHOTO.test(entry)).toSorted();
  if (files.length === 0) throw new Refusal(`There is no PNG or JPEG in ${folder}.`);
  const stems = files.map((file) => basename(file, extname(file)));
  return files.map((file, at) => {
    const stem = stems[at] ?? file;
    return { file: join(folder, file), name: stems.indexOf(stem) === stems.lastIndexOf(stem) ? stem : file };
  });
}

/** Makes the folder and tries it: better now than after the first photo. */
export async function ensureWritable(folder: string): Promise<void> {
  const probe = join(folder, `.probe.${String(process.pid)}.tmp`);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(probe, '');
  } catch (error) {
    throw new Refusal(`The folder ${folder} cannot be written to: ${messageOf(error)}`);
  } finally {
    await rm(probe, { force: true }).catch(() => undefined);
  }
}

export async function ensureTargets({ outFolder, timelineFile }: Options): Promise<void> {
  for (const folder of new Set([outFolder, dirname(timelineFile)])) await ensureWritable(folder);
}
