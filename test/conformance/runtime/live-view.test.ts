// Chapter 13: the live view.
import { execFile } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect } from 'vitest';
import { ArgumentError, type Device, UnavailableError } from 'millrace';
import { serveTimeline } from 'millrace/timeline';
import { defineChapter } from '../../support/chapter.js';
import { twice } from '../../support/kernels.js';
import { ask, type LiveMessage, messagesOf, textOf } from '../../support/live-view.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { rejectionOf } from '../../support/wait.js';

defineChapter((target) => {
  describe('13 the live view', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const nameOf = (device: Device): string => device.info.id;

    rule('S1244', 'a device says in words what its streams wait for', async () => {
      const { device } = chapter;
      expect(device.whatAreYouWaitingFor()).toEqual([]);
      const [one, two] = ['one', 'two'].map((name) => device.createStream({ label: `${name} that waits` }));
      let goOn = (): void => undefined;
      const gate = new Promise<void>((resolve) => void (goOn = resolve));
      const held = one!.hold(() => gate, { label: 'slow', timeoutMs: 10_000 });
      two!.waitStream(one!);
      using x = two!.zeros([16]);
      await expect
        .poll(() => device.whatAreYouWaitingFor().map(({ sentence }) => sentence))
        .toEqual([
          'stream one that waits is at host slow, held by a function',
          'stream two that waits waits for stream one that waits, at host slow, held by a function',
        ]);
      expect(device.whatAreYouWaitingFor().map(({ stream }) => stream)).toEqual(['one that waits', 'two that waits']);
      goOn();
      await held.done;
      await x.read();
      await Promise.all([one!.close(), two!.close()]);
    });

    rule('S1245', 'the live view tells the operations of the last seconds, then what ends, and what is pending', async () => {
      const { device } = chapter;
      await device.compile(twice);
      await using server = await serveTimeline(device, { seconds: 5 });
      // Until the clocks of a GPU are compared.
      await pause(200);
      const stream = device.createStream({ label: 'watched' });
      using x = stream.zeros([1024]);
      stream.launch(twice, { threads: 1024, label: 'before' }, { x });
      await x.read();
      await pause(200);
      const seen: string[] = [];
      let first: LiveMessage | undefined;
      for await (const message of messagesOf(server)) {
        if (first === undefined) {
          first = message;
          stream.launch(twice, { threads: 1024, label: 'after' }, { x });
        }
        for (const row of message.rows.filter((one) => one.device === nameOf(device) && one.stream === 'watched')) {
          for (const [, label, startMs, endMs] of row.slices) {
            expect(endMs).toBeGreaterThanOrEqual(startMs);
            expect(endMs).toBeLessThan(message.nowMs + 1);
            seen.push(label);
          }
        }
        if (seen.includes('after')) break;
      }
      expect(first).toMatchObject({ pid: process.pid, seconds: 5 });
      expect(seen.filter((label) => label === 'before' || label === 'after')).toEqual(['before', 'after']);
      const snapshot = JSON.parse(await textOf(await ask(`${server.url}snapshot`))) as LiveMessage;
      expect(snapshot.devices.find((one) => one.device === nameOf(device))).toMatchObject({ state: 'open', streams: expect.any(Array) });
      await stream.close();
    });

    rule('S1246', 'only who has the token and comes by the loopback address gets an answer', async () => {
      await using server = await serveTimeline(chapter.device);
      const { origin, hostname, port } = new URL(server.url);
      expect(hostname).toBe('127.0.0.1');
      expect(new URL(server.url).pathname).toMatch(/^\/[\w-]{32}\/$/);
      const page = await ask(server.url);
      const { statusCode, headers } = page;
      expect(statusCode).toBe(200);
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' });
      expect(headers['content-security-policy']).toMatch(/default-src 'none'; script-src 'nonce-[\w-]+'/);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      expect(await textOf(page)).toMatch(/^<!doctype html>/);
      expect((await ask(server.url, { host: `localhost:${port}` })).statusCode).toBe(200);
      for (const host of ['rebound.example', `rebound.example:${port}`, hostname, `127.0.0.1:${port}.example`, '[::1]'])
        expect((await ask(server.url, { host })).statusCode).toBe(403);
      const wrong = `${server.url.slice(0, -2)}${server.url.at(-2) === 'A' ? 'B' : 'A'}/`;
      for (const url of [`${origin}/`, `${origin}/snapshot`, wrong, `${wrong}events`, `${server.url}a/b`])
        expect((await ask(url)).statusCode).toBe(403);
      const bare = await ask(server.url.slice(0, -1));
      expect([bare.statusCode, new URL(bare.headers.location!, server.url).href]).toEqual([308, server.url]);
      expect((await ask(`${server.url}other`)).statusCode).toBe(404);
      for (const method of ['POST', 'OPTIONS', 'DELETE']) expect((await ask(server.url, { method })).statusCode).toBe(405);
      const another = await serveTimeline(chapter.device);
      expect(another.url).not.toBe(server.url);
      await another.close();
    });

    rule('S1247', 'close ends the pages and frees the port; bad options and taken ports are refused', async () => {
      const { device } = chapter;
      const server = await serveTimeline(device);
      const port = Number(new URL(server.url).port);
      expect(await rejectionOf(serveTimeline(device, { port }))).toBeInstanceOf(UnavailableError);
      let last: string | undefined;
      for await (const { type } of messagesOf(server)) {
        last = type;
        void server.close();
      }
      expect(last).toBe('end');
      await server.close();
      await expect(ask(server.url)).rejects.toThrow('ECONNREFUSED');
      await (await serveTimeline(device, { port })).close();
      const bad = [
        { port: -1 },
        { port: 65_536 },
        { port: 1.5 },
        { seconds: 0 },
        { seconds: 121 },
        { seconds: '5' },
        { second: 5 },
        { keepAlive: 1 },
        { deviceTimes: 'each' },
      ];
      for (const options of bad) expect(await rejectionOf(serveTimeline(device, options as never))).toBeInstanceOf(ArgumentError);
      expect(await rejectionOf(serveTimeline('nothing' as never))).toBeInstanceOf(ArgumentError);
    });

    rule('S1247', 'a live view does not keep the process alive, unless it is asked to', async () => {
      const open = target.name.startsWith('cpu') ? 'cpu' : nameOf(chapter.device);
      const program = (options: string): string => `import { openDevice } from 'millrace';
        import { serveTimeline } from 'millrace/timeline';
        import { get } from 'node:http';
        const device = await openDevice('${open}');
        const server = await serveTimeline(device, ${options});
        await new Promise((resolve) => get(server.url + 'events', (answer) => { answer.socket.unref(); resolve(); }));
        setTimeout(() => { console.log('still here'); process.exit(); }, 2000)${options === '{}' ? '.unref()' : ''};
        console.log('end');`;
      const run = async (options: string): Promise<string> => {
        const args = ['--input-type=module', '-e', program(options)];
        return (await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname, timeout: 20_000 })).stdout;
      };
      expect(await run('{}')).toBe('end\n');
      expect(await run('{ keepAlive: true }')).toBe('end\nstill here\n');
    });

    rule('S1248', 'however much runs, a page gets a bounded number of slices, and one that is slow gets less', async () => {
      const { device } = chapter;
      await using server = await serveTimeline(device, { seconds: 60 });
      await pause(200);
      const stream = device.createStream({ label: 'busy' });
      using x = stream.zeros([16]);
      const slow = await ask(`${server.url}events`);
      slow.pause();
      for (let n = 0; n < 30; n++) {
        for (let k = 0; k < 500; k++) stream.launch(twice, 16, { x });
        await x.read();
        await pause(10);
      }
      await pause(150);
      for await (const { rows } of messagesOf(server)) {
        const slices = rows.find((one) => one.stream === 'busy')!.slices;
        expect(slices.length).toBeGreaterThan(500);
        expect(slices.length).toBeLessThanOrEqual(2000);
        // Slices that stand for several operations.
        const count = slices.reduce((sum, [, , , , n]) => sum + n, 0);
        expect(count).toBeGreaterThan(10_000);
        break;
      }
      slow.destroy();
      await stream.close();
    });

    rule('S1248', 'at most 32 pages are served', async () => {
      await using server = await serveTimeline(chapter.device);
      const pages = await Promise.all(Array.from({ length: 32 }, () => ask(`${server.url}events`)));
      expect(pages.map(({ statusCode }) => statusCode)).toEqual(Array(32).fill(200));
      expect((await ask(`${server.url}events`)).statusCode).toBe(503);
      pages[0]!.destroy();
      await expect.poll(async () => (await ask(`${server.url}events`)).statusCode).toBe(200);
      for (const page of pages) page.destroy();
    });
  });
});
