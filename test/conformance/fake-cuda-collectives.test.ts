// Communicators of GPUs whose ranks fail: a fake NCCL waits, fails or reports a failure as it is asked to.
// More than 400 lines: the tests share the fake library, its control file and the devices that some of them lose for the process.
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { FAKE_DRIVER, FAKE_DRIVER_MISSING } from '../support/fake-cuda.js';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { CollectiveError, type Device, type DeviceArray, f32, type Graph, inout, kernel, openDevice, type Stream } from 'millrace';
import { type Communicator, joinCommunicator, type JoinedCommunicator, openCommunicator } from 'millrace/collectives';
import { runChild } from '../support/child.js';
import { eventually, isSettled, rejectionOf, thrownBy } from '../support/wait.js';

const control = path.join(os.tmpdir(), `millrace-collectives-${process.pid}`);
writeFileSync(control, '');
process.env['MILLRACE_FAKE_CUDA_FAIL'] = `@${control}`;
process.env['MILLRACE_FAKE_CUDA_DEVICES'] = '8';
afterAll(() => rmSync(control));

const touch = kernel('touch', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = 1;
});

const ask = (what: string): void => void (process.env['MILLRACE_FAKE_NCCL'] = what);
/** A failed rank is known on the others within 20 ms and what the library takes; more on a busy machine. */
const SOON_MS = 5_000;

const skipped = FAKE_DRIVER === undefined ? FAKE_DRIVER_MISSING : '';
describe.skipIf(skipped !== '')(`15 collectives of GPUs that fail ${skipped}`, () => {
  afterEach(() => delete process.env['MILLRACE_FAKE_NCCL']);

  /** `first`: a device that is lost for the process takes no part in another test. */
  async function withTwo(
    body: (devices: readonly Device[], x: readonly DeviceArray<'f32'>[]) => Promise<void>,
    first: 0 | 2 | 4 | 6 = 0,
  ): Promise<void> {
    const devices = [await openDevice(`cuda:${first}`), await openDevice(`cuda:${(first + 1) as 1 | 3 | 5 | 7}`)];
    await body(
      devices,
      devices.map((device, rank) => device.from([rank + 1])),
    );
    for (const device of devices) await device.close();
  }

  /** A second collective of these arrays never ends by itself; `meanwhile` makes it fail. Returns its error. */
  async function stuck(
    devices: readonly Device[],
    x: readonly DeviceArray<'f32'>[],
    meanwhile: (abort: () => void) => void,
  ): Promise<Error> {
    ask('stuck:2');
    const group = await openCommunicator(devices);
    await group.allReduce(x, { label: 'sums' }).done;
    const { arrays, done } = group.allReduce(x, { label: 'sums' });
    const later = x.map((array) => array.clone());
    const error = rejectionOf(done);
    expect(await isSettled(done)).toBe(false);
    const startMs = performance.now();
    meanwhile(() => group.abort());
    expect(await error).toBeInstanceOf(CollectiveError);
    expect(performance.now() - startMs).toBeLessThan(SOON_MS);
    for (const array of arrays) expect(await rejectionOf(array.read())).toMatchObject({ cause: expect.any(CollectiveError) as unknown });
    expect(thrownBy(() => group.allReduce(x))).toBeInstanceOf(CollectiveError);
    // What has nothing to do with it is as it was, and the devices work on.
    expect(await Promise.all(later.map((array) => array.read()))).toEqual([Float32Array.of(1), Float32Array.of(2)]);
    await group.close();
    ask('');
    await using next = await openCommunicator(devices);
    expect(await next.allReduce(x).arrays[1]!.read()).toEqual(Float32Array.of(3));
    return error;
  }

  test('S1329 abort fails what is in flight on every rank, and the devices work on', () =>
    withTwo(async (devices, x) => {
      const error = await stuck(devices, x, (abort) => abort());
      expect(error).toMatchObject({ reason: 'aborted', device: 'cuda:0' });
      expect(error.message).toContain('The allReduce (sums) on stream');
    }));

  /** A graph that averages the arrays on both devices. */
  const captured = (group: Communicator, [device, other]: readonly Device[], x: readonly DeviceArray<'f32'>[]): Graph =>
    device!.stream.capture((s) => {
      other!.stream.waitStream(s as Stream);
      group.allReduce(x, { into: x, op: 'mean' });
      (s as Stream).waitStream(other!.stream);
    });

  test('S1337 abort ends the launches of graphs that are in flight, and later ones are not begun', () =>
    withTwo(async (devices, x) => {
      ask('stuck:1');
      const group = await openCommunicator(devices);
      const graph = captured(group, devices, x);
      const first = devices[0]!.stream.launch(graph);
      const ended = rejectionOf(first.done);
      expect(await isSettled(first.done)).toBe(false);
      const second = rejectionOf(devices[0]!.stream.launch(graph).done);
      group.abort();
      expect(await ended).toMatchObject({ name: 'CollectiveError', reason: 'aborted' });
      expect(await second).toMatchObject({ cause: expect.any(CollectiveError) as unknown });
      expect(await rejectionOf(x[1]!.read())).toMatchObject({ cause: expect.any(CollectiveError) as unknown });
      expect(thrownBy(() => devices[0]!.stream.launch(graph))).toMatchObject({ name: 'CollectiveError', reason: 'aborted' });
      // The library waits for the graphs, which are still open.
      await group.close();
      ask('');
      await using next = await openCommunicator(devices);
      const y = devices.map((device, rank) => device.from([rank]));
      await using again = captured(next, devices, y);
      devices[0]!.stream.launch(again);
      expect(await Promise.all(y.map((array) => array.read()))).toEqual([Float32Array.of(0.5), Float32Array.of(0.5)]);
      await graph.close();
    }));

  test('S1337 a call that NCCL refuses in a graph fails its launches, and the communicator', () =>
    withTwo(async (devices, x) => {
      const group = await openCommunicator(devices);
      ask('call:5');
      const graph = captured(group, devices, x);
      const error = await rejectionOf(devices[0]!.stream.launch(graph).done);
      expect(error).toBeInstanceOf(CollectiveError);
      expect(error.message).toContain('ncclInvalidUsage');
      ask('');
      await eventually('the communicator refuses calls', () => {
        try {
          group.barrier();
          return false;
        } catch {
          return true;
        }
      });
      await group.close();
      await graph.close();
      expect(await devices[1]!.ones(1).read()).toEqual(Float32Array.of(1));
    }));

  test('S1337 a communicator closes while a graph of it is built, launched and open', () =>
    withTwo(async (devices, x) => {
      const group = await openCommunicator(devices);
      const graph = captured(group, devices, x);
      const { done } = devices[0]!.stream.launch(graph);
      await group.close();
      await done;
      expect(await x[0]!.read()).toEqual(Float32Array.of(1.5));
      expect(thrownBy(() => devices[0]!.stream.launch(graph))).toMatchObject({ reason: 'closed' });
    }));

  test('S1337 a launch that the driver refuses fails alone', () =>
    withTwo(async (devices, x) => {
      await using group = await openCommunicator(devices);
      await using graph = captured(group, devices, x);
      await devices[0]!.stream.launch(graph).done;
      writeFileSync(control, 'cuGraphLaunch:1:304');
      expect(await rejectionOf(devices[0]!.stream.launch(graph).done)).toMatchObject({ name: 'LaunchError' });
      writeFileSync(control, '');
      // An abort would be seen within this.
      await delay(100);
      const y = devices.map((device, rank) => device.from([rank + 1]));
      await group.allReduce(y, { into: x }).done;
      await devices[0]!.stream.launch(graph).done;
      expect(await Promise.all(x.map((array) => array.read()))).toEqual([Float32Array.of(3), Float32Array.of(3)]);
    }));

  /** Each device as a rank of its own, as if of several processes. */
  const join = async (devices: readonly Device[], timeoutMs: number): Promise<JoinedCommunicator[]> => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    return Promise.all(devices.map((device, rank) => joinCommunicator({ device, rank, size: 2, store: { port }, timeoutMs })));
  };

  test('S1338 a launch that the driver refuses ends that of the other rank', () =>
    withTwo(async (devices, x) => {
      const ranks = await join(devices, 60_000);
      const graphs = ranks.map((rank, at) => devices[at]!.stream.capture(() => void rank.allReduce(x[at]!, { into: x[at]! })));
      const launched = rejectionOf(devices[1]!.stream.launch(graphs[1]!).done);
      writeFileSync(control, 'cuGraphLaunch:1:304');
      expect(await rejectionOf(devices[0]!.stream.launch(graphs[0]!).done)).toMatchObject({ name: 'LaunchError' });
      writeFileSync(control, '');
      const startMs = performance.now();
      expect(await launched).toBeInstanceOf(CollectiveError);
      expect(performance.now() - startMs).toBeLessThan(SOON_MS);
      await Promise.all([...graphs.map((graph) => graph.close()), ...ranks.map((rank) => rank.close())]);
    }));

  test('S1338 a rank whose launch of a graph waits for one that does not come ends at the time-out', () =>
    withTwo(async (devices, x) => {
      const ranks = await join(devices, 500);
      const [group] = ranks as [JoinedCommunicator];
      await using graph = devices[0]!.stream.capture(() => void group.allReduce(x[0]!, { into: x[0]! }));
      expect(await rejectionOf(devices[0]!.stream.launch(graph).done)).toMatchObject({ name: 'CollectiveError', reason: 'timeout' });
      expect(thrownBy(() => devices[0]!.stream.launch(graph))).toMatchObject({ name: 'CollectiveError' });
      await Promise.all(ranks.map((rank) => rank.close()));
    }));

  test('S1329 an error that NCCL reports fails what is in flight', () =>
    withTwo(async (devices, x) => {
      const error = await stuck(devices, x, () => ask('stuck:2,async:6'));
      expect(error).toMatchObject({ reason: 'failed' });
      expect(error.message).toContain('NCCL reported a failure (ncclRemoteError)');
    }));

  test('S1329 a call that NCCL refuses fails, and so does the communicator', () =>
    withTwo(async (devices, x) => {
      const group = await openCommunicator(devices);
      ask('call:5');
      const error = await rejectionOf(group.allReduce(x).done);
      expect(error).toBeInstanceOf(CollectiveError);
      expect(error.message).toContain('ncclInvalidUsage');
      await group.close();
      ask('');
      expect(await devices[0]!.ones(1).read()).toEqual(Float32Array.of(1));
      await using next = await openCommunicator(devices);
      expect(await next.allReduce(x).arrays[0]!.read()).toEqual(Float32Array.of(3));
    }));

  test('S1329 a call that NCCL begins on one rank alone ends when that has ended', () =>
    withTwo(async (devices, x) => {
      const slowMs = 400;
      const group = await openCommunicator(devices);
      ask(`half:5,slow:${slowMs}`);
      const startMs = performance.now();
      expect(await rejectionOf(group.reduce(x, { root: 1 }).done)).toBeInstanceOf(CollectiveError);
      expect(performance.now() - startMs).toBeGreaterThan(slowMs - 10);
      await group.close();
      expect(await devices[1]!.ones(1).read()).toEqual(Float32Array.of(1));
    }));

  test('S1329 a collective that comes while NCCL aborts does not hold up its device', () =>
    withTwo(async (devices, x) => {
      ask('stuck:1');
      const group = await openCommunicator(devices);
      const { done } = group.allReduce(x);
      const first = rejectionOf(done);
      const streams = devices.map((device) => device.createStream({ ordering: 'explicit' }));
      let go: (() => void) | undefined;
      streams[0]!.hold(() => new Promise<void>((resolve) => (go = resolve)), { timeoutMs: 60_000 });
      const second = rejectionOf(group.allReduce(x, { streams }).done);
      await eventually('the stream is held', () => go !== undefined);
      // Once the first one waits.
      ask('stuck:1,slow:4000,async:6');
      await eventually('NCCL aborts', () => {
        try {
          group.barrier();
          return false;
        } catch {
          return true;
        }
      });
      go!();
      await new Promise((resolve) => setTimeout(resolve, 100));
      const other = devices[0]!.createStream({ ordering: 'explicit' });
      expect(await other.ones(1).read()).toEqual(Float32Array.of(1));
      expect(await isSettled(done)).toBe(false);
      expect([await first, await second]).toMatchObject([{ reason: 'failed' }, { reason: 'failed' }]);
      await group.close();
    }));

  test('S1329 a device that a call finds lost is not that of the call', () =>
    withTwo(async (devices, x) => {
      const group = await openCommunicator(devices);
      await group.allReduce(x).done;
      // The stream of the other rank waits for this.
      await devices[0]!.stream.fill(x[0]!, 1).done;
      writeFileSync(control, 'cuStreamWaitEvent:1:700');
      // Into these, so that the stream need not wait for new arrays first.
      const error = await rejectionOf(group.allReduce(x, { into: x }).operations[0]!.done);
      writeFileSync(control, '');
      expect(error).toMatchObject({ reason: 'lost' });
      expect(await devices[0]!.ones(1).read()).toEqual(Float32Array.of(1));
      expect(devices[0]!.state).toBe('open');
      await group.close();
    }, 4));

  test('S1329 collectives of survivors do not wait for those of a lost device', () =>
    withTwo(async (devices, given) => {
      // Else the fault could be that of an upload.
      await Promise.all(given.map((array) => array.read()));
      const third = await openDevice('cuda:1');
      const survivors = [devices[1]!, third];
      ask('stuck:1');
      const group = await openCommunicator(devices);
      const ended = rejectionOf(group.allReduce(devices.map((device) => device.ones(1))).done);
      writeFileSync(control, 'cuMemcpyAsync:1:700');
      expect(await rejectionOf(devices[0]!.ones(1).read())).toMatchObject({ device: 'cuda:2' });
      writeFileSync(control, '');
      await ended;
      ask('');
      const streams = survivors.map((device) => device.createStream({ ordering: 'explicit' }));
      const x = streams.map((stream) => stream.ones(1));
      await using next = await openCommunicator(survivors);
      expect(await next.allReduce(x, { streams }).arrays[1]!.read()).toEqual(Float32Array.of(2));
      await third.close();
    }, 2));

  test('S1330 the environment is as it was when a communicator is open', () =>
    withTwo(async (devices) => {
      await using group = await openCommunicator(devices);
      expect(group.size).toBe(2);
      expect(Object.keys(process.env).filter((name) => name.startsWith('NCCL_'))).toEqual([]);
    }));

  test('S1330 what NCCL says of a communicator that does not open', () =>
    withTwo(async (devices) => {
      ask('init:3');
      const error = await rejectionOf(openCommunicator(devices));
      expect(error).toBeInstanceOf(CollectiveError);
      expect(error.message).toContain('the fake library was asked to fail');
      expect(error.message).toContain('ncclInternalError');
    }));

  test('S608 the loss of a device of a communicator reaches errors$, if nothing else tells it', () =>
    withTwo(async (devices, x) => {
      const group = await openCommunicator(devices);
      await group.allReduce(x).done;
      const seen: Error[] = [];
      const completed = new Promise<void>((complete) => {
        devices[0]!.errors$.subscribe({ next: (error) => void seen.push(error), complete });
      });
      await devices[0]!.compile(touch);
      writeFileSync(control, 'kernel:1:700');
      devices[0]!.createStream({ ordering: 'explicit' }).launch(touch, 1, { x: devices[0]!.empty(1) });
      await completed;
      writeFileSync(control, '');
      expect(seen).toMatchObject([{ name: 'DeviceLostError', reason: 'fault' }]);
      await group.close();
    }, 6));

  test('S1330 an NCCL for a newer CUDA than the driver is not taken', async () => {
    const program = `
      import { openDevice } from 'millrace';
      import { openCommunicator } from 'millrace/collectives';
      const device = await openDevice('cuda:0');
      await openCommunicator([device]).catch((error) => console.log(error.name));
      await device.close();`;
    expect(await runChild(program, { MILLRACE_FAKE_CUDA_VERSION: '12080' })).toMatchObject({ stdout: 'UnavailableError\n' });
  });

  test('S1333 a group whose first call has no elements, on a stream of its own, ends at the time-out', () =>
    withTwo(async (devices, x) => {
      const ranks = await join(devices, 500);
      const [group] = ranks as [JoinedCommunicator];
      const stream = devices[0]!.createStream({ ordering: 'explicit' });
      const [none, sum] = group.group(() => [group.allReduce(stream.zeros(0), { stream }), group.allReduce(x[0]!)] as const);
      await none.done;
      expect(await rejectionOf(sum.done)).toMatchObject({ name: 'CollectiveError', reason: 'timeout' });
      await Promise.all(ranks.map((rank) => rank.close()));
    }));

  test('S1333 a rank that cannot join ends the wait of the others', async () => {
    const program = `
      import { openDevice } from 'millrace';
      import { joinCommunicator } from 'millrace/collectives';
      import { createServer } from 'node:net';
      const server = createServer().listen(0, '127.0.0.1');
      await new Promise((resolve) => server.once('listening', resolve));
      const { port } = server.address();
      await new Promise((resolve) => server.close(resolve));
      const devices = [await openDevice('cuda:0'), await openDevice('cuda:1')];
      const joining = devices.map((device, rank) => joinCommunicator({ device, rank, size: 2, store: { port } }));
      console.log((await Promise.allSettled(joining)).map(({ reason }) => reason.reason).join());
      process.exit();`;
    expect(await runChild(program, { MILLRACE_FAKE_NCCL: 'last:3' })).toMatchObject({ stdout: 'aborted,failed\n' });
  });

  test('S1325 a worker that is terminated leaves no communicator', async () => {
    const program = `
      import { readdirSync, readFileSync } from 'node:fs';
      import { once } from 'node:events';
      import { Worker } from 'node:worker_threads';
      const worker = new Worker(\`
        import { parentPort } from 'node:worker_threads';
        import { openDevice } from 'millrace';
        import { openCommunicator } from 'millrace/collectives';
        const devices = [await openDevice('cuda:0'), await openDevice('cuda:1')];
        const group = await openCommunicator(devices);
        const x = devices.map((device) => device.ones(1));
        await group.allReduce(x).done;
        // The library waits for the graph, which nobody closes.
        const graph = devices[0].stream.capture((stream) => {
          devices[1].stream.waitStream(stream);
          group.allReduce(x, { into: x });
          stream.waitStream(devices[1].stream);
        });
        await graph.launch().done;
        group.allReduce(x).done.catch(() => undefined);
        parentPort.postMessage('waits');\`, { eval: true });
      const nameOf = (task) => {
        try {
          return readFileSync('/proc/self/task/' + task + '/comm', 'utf8').trim();
        } catch {
          return ''; // It has ended.
        }
      };
      const watching = () => readdirSync('/proc/self/task').filter((task) => nameOf(task) === 'millrace-nccl');
      await once(worker, 'message');
      console.log(watching().length);
      await worker.terminate();
      console.log(watching().length);`;
    expect(await runChild(program, { MILLRACE_FAKE_NCCL: 'stuck:3' })).toMatchObject({ code: 0, stdout: '1\n0\n', stderr: '' });
  });

  test('S1329 a device that is lost fails what is in flight on the others', () =>
    withTwo(async (devices, x) => {
      ask('stuck:2');
      const group = await openCommunicator(devices);
      await group.allReduce(x).done;
      // Into these: a stream that waits for new arrays of a device that is gone is poisoned.
      const ended = rejectionOf(group.allReduce(x, { into: x }).done);
      const destroyed = devices[1]!.destroy();
      expect(await ended).toMatchObject({ device: expect.stringMatching(/^cuda:[01]$/) as unknown });
      await destroyed;
      await devices[0]!.synchronize();
      expect(await devices[0]!.ones(1).read()).toEqual(Float32Array.of(1));
      expect(thrownBy(() => group.barrier())).toBeInstanceOf(CollectiveError);
    }));

  test('S1325 a communicator keeps nothing of most streams that are closed', () =>
    withTwo(async ([device]) => {
      await using group = await openCommunicator([device!]);
      const x = device!.ones(1);
      const closed: WeakRef<object>[] = [];
      for (let n = 0; n < 200; n++) {
        const stream = device!.createStream();
        await group.allReduce([x], { streams: [stream], into: [x] }).done;
        closed.push(new WeakRef((stream as unknown as { readonly timeline: object }).timeline));
        await stream.close();
      }
      await delay(0);
      globalThis.gc!();
      expect(closed.filter((timeline) => timeline.deref() !== undefined).length).toBeLessThan(100);
    }));

  test('S1325 a closed device closes its communicators', () =>
    withTwo(async (devices, x) => {
      const group = await openCommunicator(devices);
      await group.allReduce(x).done;
      await devices[1]!.close();
      await group.close();
      expect(thrownBy(() => group.barrier())).toMatchObject({ reason: 'closed' });
    }));
});
