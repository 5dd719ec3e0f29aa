// The cases of loop-turns.mjs about pipelines, and the module of their CPU pool, so it imports nothing.

/** The task of the pool. */
export const double = (n) => 2 * n;

/** `millrace`, `rxjs`: the modules. `tools`: of loop-turns.mjs. */
export function pipelineCases(millrace, rxjs, { device, step, gather, numbers, nextTurn, settled, sliced }) {
  const { batchFor, cpuStage, cpuTasks, createBatcher, createCpuPool, createLanes, download, launch, launchGraph, onStream, overlap } =
    millrace;
  const { overlapMap, upload } = millrace;
  const { concatMap, from, lastValueFrom, map, observeOn, tap } = rxjs;
  const items = numbers.slice(0, 500);
  const { stream } = device;

  /** Every item of the source is seen. */
  const all = async (values) => {
    let count = 0;
    for await (const _ of values) count++;
    if (count !== items.length) throw new Error(`${count} items`);
  };
  const last = (values) => lastValueFrom(values);
  const stage = async (item, lane) => {
    const z = lane.stream.zeros(64);
    await lane.stream.launch(step, 64, { y: z }).done;
    z[Symbol.dispose]();
    return item;
  };
  /** Requests of a service, most of which wait for a lane. */
  const service = async (lanes) => {
    const { all: ended, take } = settled(1000);
    await sliced(1000, (n) => take(lanes.run(n)));
    await ended;
    lanes.report();
    await lanes.close();
  };
  /** One item a turn. */
  const paced = () =>
    from(items).pipe(
      concatMap(async (n) => {
        await nextTurn();
        return n;
      }),
    );
  const arrays = () =>
    paced().pipe(
      map((n) => new Float32Array(64).fill(n)),
      upload(stream),
    );

  return {
    'overlap of 500 items': () => all(overlap(device, items, stage)),
    'overlap of 500 items that all fail': () =>
      all(
        overlap(device, items, { onError: 'skip' }, async (_, lane) => {
          await lane.stream.launch(gather, 64, { at: 5000, x: lane.stream.zeros(64), y: lane.stream.zeros(64) }).done;
        }),
      ).catch(() => undefined),
    'overlapMap of 500 items': () => last(from(items).pipe(overlapMap(device, { overflow: 'buffer', maxQueue: 1000 }, stage))),
    'upload, launch, launchGraph and download of 500 items': async () => {
      const z = device.zeros(64);
      const graph = stream.capture((s) => void s.launch(step, 64, { y: z }));
      const operators = [launch(stream, step, 64, (y) => ({ y })), launchGraph(stream, graph), download(stream)];
      await last(arrays().pipe(...operators));
      await graph.close();
    },
    'onStream with 500 items': () =>
      last(
        arrays().pipe(
          observeOn(onStream(stream)),
          tap((array) => array[Symbol.dispose]()),
        ),
      ),
    'createLanes with 1,000 requests': () => service(createLanes(device, { maxQueue: 1000 }, stage)),
    'createBatcher with 1,000 requests': () =>
      service(
        createBatcher(device, { maxItems: 32, maxWaitMs: 1, maxQueue: 1000 }, async (batch, lane) => (await stage(batch, lane)).slice()),
      ),
    'batchFor with 500 values': () => last(paced().pipe(batchFor({ maxItems: 10, maxWaitMs: 1 }))),
    'the first tasks of a CPU pool of 8 threads': async () => {
      const pool = createCpuPool(new URL(import.meta.url), { threads: 8 });
      await Promise.all(items.slice(0, 8).map((n) => pool.run(n, { name: 'double' })));
      await pool.close();
    },
    'cpuStage with 500 tasks': async () => {
      const pool = createCpuPool(new URL(import.meta.url), { threads: 2 });
      await last(from(items).pipe(cpuStage(cpuTasks(pool), 'double', (n) => n)));
      await pool.close();
    },
  };
}
