// The edges of a large image, in strips of rows over several devices. Each strip also has the row above it and the row below it.
// The devices are those that the command line names, or all GPUs, or all CPU devices (MILLRACE_CPU_DEVICES=2 makes two).
import { input, kernel, listDevices, openDevice, output, overlap, u8, type DeviceSpec } from 'millrace';

const WIDTH = 1000;
const HEIGHT = 1000;
const ROWS = 64;

const edges = kernel('edges', { strip: input(u8, 2), edge: output(u8, 2) }, ({ strip, edge }, { i, j, clamp, min }) => {
  const right = strip[i + 1]![clamp(j + 1, 0, strip.shape[1] - 1)]!;
  const left = strip[i + 1]![clamp(j - 1, 0, strip.shape[1] - 1)]!;
  edge[i]![j] = min(255, Math.abs(right - left) + Math.abs(strip[i + 2]![j]! - strip[i]![j]!));
});

const names = process.argv.length > 2 ? (process.argv.slice(2) as DeviceSpec[]) : await allDevices();
const devices = await Promise.all(names.map((name) => openDevice(name)));

async function allDevices(): Promise<readonly DeviceSpec[]> {
  const listed = await listDevices();
  const gpus = listed.filter(({ backend }) => backend === 'cuda');
  return (gpus.length > 0 ? gpus : listed).map(({ id }) => id);
}

/** A white disc on black. */
const image = new Uint8Array(WIDTH * HEIGHT);
for (let y = 0; y < HEIGHT; y++)
  for (let x = 0; x < WIDTH; x++) image[y * WIDTH + x] = (x - 500) ** 2 + (y - 500) ** 2 < 300 ** 2 ? 255 : 0;

/** The rows from `top` on with one more on each side; at the border of the image, its own first or last row once more. */
function cut(top: number, rows: number): Uint8Array {
  const strip = new Uint8Array((rows + 2) * WIDTH);
  for (let row = -1; row <= rows; row++) {
    const from = Math.min(HEIGHT - 1, Math.max(0, top + row)) * WIDTH;
    strip.set(image.subarray(from, from + WIDTH), (row + 1) * WIDTH);
  }
  return strip;
}

function* tops() {
  for (let top = 0; top < HEIGHT; top += ROWS) yield top;
}

const used = new Set<number>();
const strips = overlap(devices, tops, { depth: 2 }, async (top, lane) => {
  used.add(devices.indexOf(lane.device));
  const rows = Math.min(ROWS, HEIGHT - top);
  const strip = lane.from(cut(top, rows), { shape: [rows + 2, WIDTH] });
  const edge = lane.empty([rows, WIDTH], u8);
  lane.stream.launch(edges, [rows, WIDTH], { strip, edge });
  return { top, pixels: await edge.read() };
});

const result = new Uint8Array(WIDTH * HEIGHT);
for await (const { top, pixels } of strips) result.set(pixels, top * WIDTH);

const at = (x: number, y: number) => image[Math.min(HEIGHT - 1, Math.max(0, y)) * WIDTH + Math.min(WIDTH - 1, Math.max(0, x))]!;
const isRight = result.every((value, index) => {
  const x = index % WIDTH;
  const y = Math.floor(index / WIDTH);
  return value === Math.min(255, Math.abs(at(x + 1, y) - at(x - 1, y)) + Math.abs(at(x, y + 1) - at(x, y - 1)));
});
console.log('every device had work:', used.size === devices.length); // prints: every device had work: true
console.log('right:', isRight, 'white pixels:', result.filter((value) => value === 255).length); // prints: right: true white pixels: 3396
await Promise.all(devices.map((device) => device.close()));
