// A log of what the device did: how many operations of each kind, with their bytes, and every failure.
import { download, f32, inout, kernel, launch, openDevice, overlap, upload, type DeviceSpec } from 'millrace';
import { filter, groupBy, lastValueFrom, map, mergeMap, of, reduce, toArray } from 'rxjs';

const half = kernel('half', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! / 2;
});

const device = await openDevice((process.argv[2] ?? 'auto') as DeviceSpec);

/** Subscribed before the work is submitted, because operations$ does not repeat what has passed. It completes with the device. */
const summary = lastValueFrom(
  device.operations$.pipe(
    filter(({ kind }) => kind === 'launch' || kind === 'copy'),
    groupBy(({ kind, label }) => `${kind}${label === undefined ? '' : ` ${label}`}`),
    mergeMap((group$) =>
      group$.pipe(
        reduce(({ count, bytes }, operation) => ({ count: count + 1, bytes: bytes + (operation.bytes ?? 0) }), { count: 0, bytes: 0 }),
        map(({ count, bytes }) => `${group$.key}: ${count}, ${bytes} bytes`),
      ),
    ),
    toArray(),
  ),
);

const blocks = Array.from({ length: 8 }, (_, n) => new Float32Array(1000).fill(n));
const run = overlap(device, blocks, {}, (block, lane) =>
  of(block).pipe(
    upload(lane),
    launch(lane, half, block.length, (x) => ({ x })),
    download(lane),
  ),
);
await lastValueFrom(run);
await device.close();
for (const line of (await summary).toSorted()) console.log(line); // prints: copy: 16, 64000 bytes
// prints: launch half: 8, 0 bytes
