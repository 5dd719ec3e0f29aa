// Pulls from endless sources of every kind through `overlap`, subscribing and iterating, and fails when a run is ever more than
// `depth` items ahead. Prints 'done'.
//   node endless-sources.mjs <device>
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { openDevice, overlap } from 'millrace';
import { lastValueFrom, take } from 'rxjs';

const device = await openDevice(process.argv[2]);
const RESULTS = 60;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Items that were pulled, results that the consumer is done with, and the largest difference so far. */
let pulled;
let used;
let ahead;
function* items() {
  for (;;) {
    ahead = Math.max(ahead, ++pulled - used);
    yield pulled - 1;
  }
}
async function* asyncItems() {
  for (const item of items()) {
    await turn();
    yield item;
  }
}

/** Each kind of source, and how many items it takes from its maker before somebody asks for them. */
const SOURCES = {
  generator: [() => items(), 0],
  'async generator': [() => asyncItems(), 0],
  'Node stream': [() => Readable.from(items(), { highWaterMark: 1 }), 2],
  'web stream': [
    () => {
      const iterator = items();
      return new ReadableStream({ pull: (controller) => controller.enqueue(iterator.next().value) }, { highWaterMark: 0 });
    },
    0,
  ],
};

for (const [name, [open, buffered]] of Object.entries(SOURCES)) {
  for (const depth of [1, 3]) {
    for (const isIterating of [true, false]) {
      [pulled, used, ahead] = [0, 0, 0];
      const run = overlap(device, open(), { depth }, async (item, lane) => {
        for (let n = 1 + (item % 5); n > 0; n--) await turn();
        const [read] = await lane.full(1, item, 'i32').read();
        // Who subscribes takes a result at once.
        if (!isIterating) used++;
        return read;
      });
      if (isIterating) {
        let expected = 0;
        for await (const value of run) {
          assert.equal(value, expected++);
          // A slow consumer: what it has not asked for is not used.
          for (let n = 5; n > 0; n--) await turn();
          used++;
          if (expected === RESULTS) break;
        }
      } else await lastValueFrom(run.pipe(take(RESULTS)));
      const what = `${name}, depth ${depth}, ${isIterating ? 'iterating' : 'subscribing'}: ${ahead} items ahead`;
      assert.ok(ahead <= depth + buffered, what);
      // Lanes are used, too: as many items are in flight as there may be.
      assert.ok(ahead >= depth, what);
      const atEnd = pulled;
      for (let n = 10; n > 0; n--) await turn();
      assert.equal(pulled, atEnd, `${what}, and pulled more after its end`);
    }
  }
}
await device.close();
console.log('done');
