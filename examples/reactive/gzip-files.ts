// A compressed file in, a compressed file out: Node streams around a device stage. pipeline passes back-pressure from the disk to the lanes.
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip, gunzipSync, gzipSync } from 'node:zlib';
import { inout, kernel, openDevice, overlap, u8, type DeviceSpec } from 'millrace';

/** Swaps each letter with the one 13 places on; twice gives the text again. */
const rot13 = kernel('rot13', { text: inout(u8) }, ({ text }, { i }) => {
  const c = text[i]!;
  const letter = c | 32;
  if (letter >= 97 && letter <= 122) text[i] = c + (letter < 110 ? 13 : -13);
});

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);
const folder = await mkdtemp(join(tmpdir(), 'millrace-gzip-'));
try {
  const plain = 'Why did the chicken cross the road?\n'.repeat(50_000);
  await writeFile(join(folder, 'plain.gz'), gzipSync(plain));

  await pipeline(
    createReadStream(join(folder, 'plain.gz')),
    createGunzip({ chunkSize: 1 << 18 }),
    (chunks: AsyncIterable<Buffer>) =>
      overlap(device, chunks, { depth: 3 }, async (chunk, lane) => {
        const text = lane.from(chunk);
        lane.stream.launch(rot13, text.length, { text });
        return await text.read();
      }),
    createGzip(),
    createWriteStream(join(folder, 'secret.gz')),
  );

  const secret = gunzipSync(await readFile(join(folder, 'secret.gz'))).toString();
  console.log(secret.slice(0, 35)); // prints: Jul qvq gur puvpxra pebff gur ebnq?
  console.log('as long as before:', secret.length === plain.length); // prints: as long as before: true
} finally {
  await rm(folder, { recursive: true });
}
