// A camera gives a frame every two milliseconds, whether or not the device is free. Older frames that wait are dropped, the newest one is shown.
import { download, inout, kernel, launch, openDevice, overlapMap, u8, upload, type DeviceSpec } from 'millrace';
import { interval, map, of, take, tap } from 'rxjs';

const WIDTH = 640;
const HEIGHT = 480;
const FRAMES = 100;

const negative = kernel('negative', { image: inout(u8, 2) }, ({ image }, { i, j }) => {
  image[i]![j] = 255 - image[i]![j]!;
});

await using device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);

/** Each frame is one plain grey, the number of the frame. */
const camera$ = interval(2).pipe(
  take(FRAMES),
  map((n) => new Uint8Array(WIDTH * HEIGHT).fill(n)),
);

let dropped = 0;
let shown = 0;
const screen$ = camera$.pipe(
  overlapMap(device, { overflow: 'latest', depth: 2, onSkip: () => dropped++ }, (frame, lane) =>
    of(frame).pipe(
      upload(lane, { shape: [HEIGHT, WIDTH] }),
      launch(lane, negative, [HEIGHT, WIDTH], (image) => ({ image })),
      download(lane),
    ),
  ),
  map((frame) => 255 - frame[0]!),
  tap(() => shown++),
);

let last = -1;
let isInOrder = true;
await screen$.forEach((number) => {
  isInOrder &&= number > last;
  last = number;
});
console.log('shown and dropped:', shown + dropped); // prints: shown and dropped: 100
console.log('in order:', isInOrder, 'last:', last); // prints: in order: true last: 99
