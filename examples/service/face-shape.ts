// The shape of the face detector: the tiny one of @vladmandic/face-api, a TinyYOLOv2 whose convolutions are separable.

/** Rows and columns of the pictures that it reads, RGB. */
export const SIDE = 416;
/** What a place of the last layer says of each of its five boxes: x, y, width, height, score. */
export const VALUES = 5;
/** Widths and heights of these boxes before they are scaled, in places of the last layer. */
export const ANCHORS: readonly (readonly [width: number, height: number])[] = [
  [1.603231, 2.094468],
  [6.041143, 7.080126],
  [2.882459, 3.518061],
  [4.266906, 5.178857],
  [9.041765, 10.66308],
];
/** Columns of the last layer. */
export const COLUMNS = ANCHORS.length * VALUES;

interface Layer {
  readonly channels: number;
  readonly filters: number;
  /** How far the windows of 2 x 2 places that follow it are apart. */
  readonly stride: 1 | 2;
}
const CHANNELS = [16, 32, 64, 128, 256, 512] as const;
/** The channels that the first layer makes of a picture. */
export const FIRST = CHANNELS[0];
export const LAST = CHANNELS[5];
export const LAYERS: readonly Layer[] = CHANNELS.slice(1).map((filters, n) => ({
  channels: CHANNELS[n]!,
  filters,
  stride: n === 4 ? 1 : 2,
}));

/** The parameters in their order, each as rows and columns. The names are those of the package. */
export const WEIGHTS: readonly { readonly name: string; readonly rows: number; readonly columns: number }[] = [
  { name: 'conv0/filters', rows: 27, columns: FIRST },
  { name: 'conv0/bias', rows: 1, columns: FIRST },
  ...LAYERS.flatMap(({ channels, filters }, n) => [
    { name: `conv${n + 1}/depthwise_filter`, rows: 9, columns: channels },
    { name: `conv${n + 1}/pointwise_filter`, rows: channels, columns: filters },
    { name: `conv${n + 1}/bias`, rows: 1, columns: filters },
  ]),
  { name: 'conv8/filters', rows: LAST, columns: COLUMNS },
  { name: 'conv8/bias', rows: 1, columns: COLUMNS },
];

/** Rows and columns of what each layer reads: of the first one's result, then of those behind each pooling. The last is that of the answer. */
export function sidesOf(side: number): readonly number[] {
  const sides = [(side - 2) / 2];
  for (const { stride } of LAYERS) sides.push(Math.ceil(sides.at(-1)! / stride));
  return sides;
}
