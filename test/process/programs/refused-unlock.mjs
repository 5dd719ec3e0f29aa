// Page-locked memory of a program that the driver does not unlock: the device goes on, and so does the memory.
import { openDevice, StateError } from 'millrace';

const device = await openDevice('cuda');
const { stream } = device;
const data = new Float32Array(new SharedArrayBuffer(2 ** 16));
/** The device has unlocked it, as far as the driver allows, some turns after the array was disposed. */
async function pin() {
  for (;;) {
    try {
      return device.pin(data);
    } catch (error) {
      if (!(error instanceof StateError)) throw error;
      await new Promise(setImmediate);
    }
  }
}
for (let n = 1; n <= 3; n++) {
  const pinned = await pin();
  const x = stream.full(data.length, n);
  await stream.copy(pinned, x).done;
  console.log(data[0], data.at(-1));
  for (const array of [pinned, x]) array[Symbol.dispose]();
}
(await pin())[Symbol.dispose]();
console.log(device.state);
await device.close();
console.log(device.state);
