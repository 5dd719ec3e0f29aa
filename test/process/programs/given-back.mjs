// Waits until a device has only the streams of this thread, and no memory: what other threads had was given back.
export async function untilGivenBack(device, limitMs = 20_000) {
  const until = performance.now() + limitMs;
  for (;;) {
    await device.synchronize();
    const { streams, liveMemory, liveBytes, parked } = device.core.channel.stats();
    const own = device.core.timelines.size;
    if (streams === own && liveMemory === 0 && liveBytes === 0) {
      console.log('all given back');
      return;
    }
    if (performance.now() > until) {
      console.log(`left: ${streams - own} streams, ${liveMemory} blocks, ${liveBytes} bytes, parked ${JSON.stringify(parked)}`);
      return;
    }
    await new Promise(setImmediate);
  }
}
