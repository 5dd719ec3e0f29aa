// Arrays are made in stream order and nobody waits for them: an allocation, then a fill, on the device's current stream.
import assert from 'node:assert/strict';
import type { Device } from 'millrace';

export async function run(devices: readonly Device[]): Promise<void> {
  for (const device of devices) {
    using raw = device.empty([4, 8], 'i16');
    using zeros = device.zeros([4, 8]);
    using ones = device.ones(32, 'f64');
    using sevens = device.full([2, 2, 8], 7, 'i32');
    using data = device.from(new Uint8Array([1, 2, 3]));
    using copy = sevens.clone();

    assert.deepEqual([raw.dtype, raw.shape, raw.byteLength], ['i16', [4, 8], 64]);
    assert.ok((await zeros.read()).every((value) => value === 0));
    assert.ok((await ones.read()).every((value) => value === 1));
    assert.deepEqual(copy.shape, [2, 2, 8]);
    assert.ok((await copy.read()).every((value) => value === 7));
    assert.deepEqual([...(await data.read())], [1, 2, 3]);
  }
}
