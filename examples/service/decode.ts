// What runs on the pool's threads: a picture becomes a square of RGB pixels, which are written into pinned memory in place.
import sharp from 'sharp';

// The pool is the parallelism.
sharp.concurrency(1);
sharp.cache(false);

/** A small file may be a huge picture. */
const MOST_PIXELS = 32_000_000;

/** The picture as it is shown: cameras write it lying down and say how to turn it. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface DecodeTask {
  readonly bytes: Uint8Array;
  readonly side: number;
  /** Receives side * side * 3 bytes: the picture in the upper left, as large as it fits. */
  readonly into: Uint8Array;
}

export type Decoded = Size | { readonly statusCode: 400 | 413; readonly message: string };

export async function decode({ bytes, side, into }: DecodeTask): Promise<Decoded> {
  try {
    const picture = sharp(bytes, { limitInputPixels: false });
    const { width, height, autoOrient } = await picture.metadata();
    if (width * height > MOST_PIXELS)
      return { statusCode: 413, message: `The picture has ${width} x ${height} pixels, more than ${MOST_PIXELS}.` };
    const pixels = await picture
      .autoOrient()
      .flatten({ background: 'white' })
      .resize(side, side, { fit: 'contain', position: 'left top', background: 'black' })
      .toColourspace('srgb')
      .removeAlpha()
      .raw()
      .toBuffer();
    if (pixels.length !== into.length) throw new Error(`it has ${pixels.length / side / side} channels`);
    into.set(pixels);
    return { width: autoOrient.width, height: autoOrient.height };
  } catch (error) {
    return { statusCode: 400, message: `The picture cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
}
