// Files in, entropies out: a file is read while another one is copied and a third is counted.
import { readFile } from 'node:fs/promises';
import { type Device, overlap } from 'millrace';
import { count } from './kernels.js';

export interface Result {
  readonly file: string;
  readonly bytes: number;
  /** Bits that a byte of the file carries, from 0 to 8. */
  readonly entropy: number;
}

/** The results in the order of the files. A file that cannot be read ends the run with its error. */
export function entropies(device: Device, files: Iterable<string> | AsyncIterable<string>): AsyncIterable<Result> {
  return overlap(device, files, { depth: 3 }, async (file, lane) => {
    const data = await readFile(file);
    if (data.length === 0) return { file, bytes: 0, entropy: 0 };
    const pinned = lane.pinned(data.length, 'u8');
    pinned.data.set(data);
    const bytes = lane.empty(data.length, 'u8');
    const counts = lane.zeros(256, 'u32');
    lane.stream.copy(bytes, pinned);
    lane.stream.launch(count, { grid: 64, block: 256 }, { bytes, length: data.length, counts });
    const found = await counts.read();
    let entropy = 0;
    for (const one of found) if (one > 0) entropy -= (one / data.length) * Math.log2(one / data.length);
    return { file, bytes: data.length, entropy };
  });
}
