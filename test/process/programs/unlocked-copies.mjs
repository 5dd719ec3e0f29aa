// Copies of two pinned arrays that the driver may not page-lock.
import { openDevice } from 'millrace';

try {
  const device = await openDevice('cuda');
  const x = device.zeros(3 * 2 ** 24);
  const arrays = [device.pinned(3 * 2 ** 24), device.pinned(3 * 2 ** 24)];
  const seen = [];
  // The last first: the staging memory of copies is then registered after both arrays.
  for (const pinned of arrays.toReversed()) {
    pinned.data[5] = 7;
    device.stream.copy(x, pinned);
    seen.push(await x.item(5));
  }
  console.log(...seen);
  await device.close();
} catch (error) {
  console.log(`${error.name} ${error.message.replaceAll('\n', ' ')}`);
}
process.exit();
