// The single calls of loop-turns.mjs: what they do grows with their arguments, and they cannot yield. For each the least CPU time, in
// milliseconds, of several calls.

/** `cpuMs`: the CPU time of the thread. `mostMs`: calls that take longer in each run are printed. */
export async function callTimes(millrace, { device, step, y, numbers, cpuMs, mostMs, isWanted }) {
  const { bitsFromFloats, cudaModule, floatsFromBits } = millrace;
  const { stream } = device;
  const floats = new Float32Array(2 << 20);
  const halves = new Uint16Array(1_000_000);
  const pinned = device.pinned(2 << 20);
  const large = device.zeros(2 << 20);
  const many = Array.from({ length: 4_000_000 }, (_, n) => n);
  const body = (s) => {
    for (let n = 0; n < 10_000; n++) s.launch(step, 64, { y });
  };
  const graph = stream.capture(body);
  const made = [];
  const text = Array.from({ length: 500 }, (_, n) => `__device__ float helper${n}(float x) { return x * 2.0f + ${n}.0f; }\n`).join('');

  const calls = {
    'from(4,000,000 numbers)': () => made.push(device.from(many)),
    'from(1,000,000 numbers, { dtype: i32 })': () => made.push(device.from(numbers, { dtype: 'i32' })),
    'from(1,000,000 numbers, { dtype: f16 })': () => made.push(device.from(numbers, { dtype: 'f16' })),
    'from(1,000,000 numbers, { dtype: i64 })': () => made.push(device.from(numbers, { dtype: 'i64' })),
    'from(Float32Array of 8 MiB)': () => made.push(device.from(floats)),
    'copy of 8 MiB from ordinary memory': () => stream.copy(large, floats),
    'pinned(8 MiB)': () => made.push(device.pinned(2 << 20)),
    'read() of 8 MiB of pinned memory': () => void pinned.read(),
    'bitsFromFloats(1,000,000 numbers)': () => void bitsFromFloats(numbers, 'bf16'),
    'floatsFromBits(1,000,000 elements)': () => void floatsFromBits(halves, 'bf16'),
    'capture of 10,000 nodes': () => made.push(stream.capture(body)),
    'update of 10,000 nodes': () => graph.update(body),
    'nodes of 10,000': () => void graph.nodes,
    'edges of 10,000 nodes': () => void graph.edges,
    'toDot() of 10,000 nodes': () => void graph.toDot(),
    'launch of 10,000 nodes': () => stream.launch(graph),
    'cudaModule of 500 functions': () => void cudaModule(`${text}__global__ void own(float* y) { y[threadIdx.x] = helper0(1); }`),
    'inspect() of a device': () => void device.inspect(),
  };
  for (const [name, call] of Object.entries(calls)) {
    if (!isWanted(name)) continue;
    let least = Infinity;
    for (let run = 0; run < 8 && (run === 0 || least > mostMs); run++) {
      const from = cpuMs();
      call();
      least = Math.min(least, cpuMs() - from);
      await stream.synchronize();
      for (const each of made.splice(0)) await (each.close?.() ?? each[Symbol.dispose]());
    }
    if (least > mostMs) console.log(`${least.toFixed(2).padStart(8)}  ${name}`);
  }
  for (const each of [large, pinned]) each[Symbol.dispose]();
  await graph.close();
}
