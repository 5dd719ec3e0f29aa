// Copies of every kind on the devices named, two of them or one: prints 'done' when the bytes are right.
import assert from 'node:assert/strict';
import { openDevice } from 'millrace';

const [one, other] = await Promise.all(process.argv.slice(2).map((spec) => openDevice(spec)));
const TWO = other ?? one;
const rows = 64;
const values = Float32Array.from({ length: rows * rows }, (_, n) => n);

// Another arrangement on every device, on every stream of either, whatever its ordering.
const x = one.from(values, { shape: [rows, rows] });
const turned = Float32Array.from(values, (_, n) => (n % rows) * rows + Math.floor(n / rows));
assert.deepEqual(await x.transpose().read(), turned);
const clone = x.transpose().clone();
assert.deepEqual(await clone.read(), turned);
clone[Symbol.dispose]();
assert.equal(await x.item(3, 5), 3 * rows + 5);
const y = TWO.zeros([rows, rows]);
for (const device of [one, TWO]) {
  for (const ordering of ['tracked', 'checked', 'explicit']) {
    const stream = device.createStream({ ordering });
    stream.waitStream(one.defaultStream);
    stream.waitStream(TWO.defaultStream);
    stream.copy(y, x.transpose());
    stream.copy(y.view([0, 1]), x.view([undefined, 1]));
    await stream.copy(y.view([undefined, undefined, -1], 0), x.view(2)).done;
    const expected = turned.slice();
    expected.set(values.subarray(0, rows));
    for (let n = 0; n < rows; n++) expected[(rows - 1 - n) * rows] = values[2 * rows + n];
    assert.deepEqual(await y.read(), expected);
    one.defaultStream.waitStream(stream);
    await stream.close();
  }
}

// Memory given back right after the call.
for (let n = 0; n < 100; n++) {
  const source = one.from(values, { shape: [rows, rows] });
  const target = TWO.empty([rows, rows]);
  (n % 2 === 0 ? one : TWO).stream.copy(target.transpose(), source.view([undefined, undefined, -1]));
  source[Symbol.dispose]();
  const read = target.read();
  target[Symbol.dispose]();
  const bytes = await read;
  for (let at = 0; at < bytes.length; at++) assert.equal(bytes[at], (rows - 1 - (at % rows)) * rows + Math.floor(at / rows));
}

// Page-locked memory of the other device, and of the user's.
const pinned = TWO.pinned([rows, rows]);
await one.stream.copy(pinned, x.transpose()).done;
assert.deepEqual(Float32Array.from(pinned.data), turned);
const shared = new Float32Array(new SharedArrayBuffer(4 * rows * rows));
const locked = one.pin(shared);
await one.stream.copy(locked, x).done;
assert.deepEqual(Float32Array.from(shared), values);
locked[Symbol.dispose]();
assert.deepEqual(Float32Array.from(shared), values);

// Large ones: transferred, borrowed, read through the worker.
const length = 6 * 2 ** 20;
const big = one.zeros(length, 'u32');
const data = new Uint32Array(length).fill(7);
await one.stream.copy(big, data, { transfer: true }).done;
assert.equal(data.length, 0);
assert.ok((await big.read()).every((value) => value === 7));
await one.stream.copy(big, new Uint32Array(new SharedArrayBuffer(4 * length)).fill(8)).done;
const into = new Uint32Array(length);
assert.equal(await big.read({ into }), into);
assert.ok(into.every((value) => value === 8));
await assert.rejects(big.read({ signal: AbortSignal.abort() }), { name: 'AbortError' });

for (const array of [x, y, pinned, big]) array[Symbol.dispose]();
await one.synchronize();
await TWO.synchronize();
assert.equal((await one.pool.stats()).stagingBytes, 0);
await one.close();
await other?.close();
console.log('done');
