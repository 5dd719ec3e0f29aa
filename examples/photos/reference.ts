// The same four filters, one pixel after another on the host, written to be read. Tests compare the devices with it:
// no byte may differ by more than 1.

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Interleaved RGB. */
  readonly rgb: Uint8Array;
}

export interface Filtered {
  readonly blurred: Uint8Array;
  readonly sharp: Uint8Array;
  readonly edges: Uint8Array;
  readonly bins: Uint32Array;
}

export function filterPicture(picture: Picture, weights: Float32Array, sharpenAmount: number): Filtered {
  const grey = brightness(picture);
  const smooth = blur(picture, weights);
  return {
    blurred: Uint8Array.from(smooth, roundToByte),
    sharp: Uint8Array.from(smooth, (value, at) => {
      const byte = picture.rgb[at] ?? 0;
      return roundToByte(byte + sharpenAmount * (byte - value));
    }),
    edges: gradient(grey, picture.width, picture.height),
    bins: histogram(grey),
  };
}

function brightness({ width, height, rgb }: Picture): Uint8Array {
  return Uint8Array.from(
    { length: width * height },
    (_, at) => (77 * byteAt(rgb, 3 * at) + 150 * byteAt(rgb, 3 * at + 1) + 29 * byteAt(rgb, 3 * at + 2)) >> 8,
  );
}

function blur({ width, height, rgb }: Picture, weights: Float32Array): Float64Array {
  const radius = (weights.length - 1) / 2;
  const rows = new Float64Array(rgb.length);
  const smooth = new Float64Array(rgb.length);
  eachByte(width, height, (x, y, channel, at) => {
    for (let k = -radius; k <= radius; k++) {
      rows[at]! += (weights[k + radius] ?? 0) * byteAt(rgb, (y * width + clamp(x + k, width)) * 3 + channel);
    }
  });
  eachByte(width, height, (x, y, channel, at) => {
    for (let k = -radius; k <= radius; k++) {
      smooth[at]! += (weights[k + radius] ?? 0) * (rows[(clamp(y + k, height) * width + x) * 3 + channel] ?? 0);
    }
  });
  return smooth;
}

function gradient(grey: Uint8Array, width: number, height: number): Uint8Array {
  const result = new Uint8Array(grey.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = (dx: number, dy: number): number => byteAt(grey, clamp(y + dy, height) * width + clamp(x + dx, width));
      const gx = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
      const gy = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
      result[y * width + x] = roundToByte(Math.sqrt(gx * gx + gy * gy));
    }
  }
  return result;
}

function histogram(grey: Uint8Array): Uint32Array {
  const bins = new Uint32Array(256);
  for (const value of grey) bins[value]! += 1;
  return bins;
}

function eachByte(width: number, height: number, visit: (x: number, y: number, channel: number, at: number) => void): void {
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let channel = 0; channel < 3; channel++, at++) visit(x, y, channel, at);
    }
  }
}

/** Beyond the edge the picture repeats its last pixel. */
function clamp(at: number, size: number): number {
  return Math.min(Math.max(at, 0), size - 1);
}

function roundToByte(value: number): number {
  return Math.floor(Math.min(Math.max(value, 0), 255) + 0.5);
}

function byteAt(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}
