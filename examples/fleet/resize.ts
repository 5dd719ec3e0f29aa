// A picture made smaller: each pixel of the result is the mean of the box of the picture that it covers.
import sharp from 'sharp';
import { input, kernel, output, u8, type Lane } from 'millrace';

sharp.concurrency(1);
sharp.cache(false);

/** The longer side of a result. */
export const SIDE = 128;

/** One thread for each byte of the result: rows are [height, width * 3]. Whole numbers, so each device computes the same. */
export const shrink = kernel('shrink', { from: input(u8, 2), to: output(u8, 2) }, ({ from, to }, { i, j, idiv }) => {
  const width = idiv(from.shape[1], 3);
  const columns = idiv(to.shape[1], 3);
  const column = idiv(j, 3);
  const channel = j % 3;
  const top = idiv(i * from.shape[0], to.shape[0]);
  const bottom = Math.max(idiv((i + 1) * from.shape[0], to.shape[0]), top + 1);
  const left = idiv(column * width, columns);
  const right = Math.max(idiv((column + 1) * width, columns), left + 1);
  let sum = 0;
  for (let y = top; y < bottom; y++) {
    for (let x = left; x < right; x++) sum += from.at(y, 3 * x + channel);
  }
  to.set(i, j, idiv(sum, (bottom - top) * (right - left)));
});

/** The JPEG of a picture file, its longer side `SIDE` pixels. */
export async function resize(file: string, lane: Lane): Promise<Uint8Array> {
  const { data, info } = await sharp(file).flatten().toColourspace('srgb').raw().toBuffer({ resolveWithObject: true });
  const scale = Math.min(1, SIDE / Math.max(info.width, info.height));
  const [height, width] = [Math.round(info.height * scale), Math.round(info.width * scale)];
  const from = lane.empty([info.height, info.width * 3], u8);
  lane.stream.copy(from, new Uint8Array(data));
  const to = lane.empty([height, width * 3], u8);
  lane.stream.launch(shrink, to.shape, { from, to });
  return sharp(await to.read(), { raw: { width, height, channels: 3 } })
    .jpeg()
    .toBuffer();
}
