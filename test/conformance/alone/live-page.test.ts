// The page of the live view in a browser: it draws what runs, keeps only its seconds, and runs nothing of the program's texts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser } from 'playwright-core';
import { type Device, openDevice } from 'millrace';
import { serveTimeline } from 'millrace/timeline';
import { defineChapter } from '../../support/chapter.js';
import { launchChromium, noChromium } from '../../support/chromium.js';

const MARKUP = '<img src=x onerror="document.title=1">';

defineChapter(() => {
  describe.skipIf(noChromium)(`the live page${noChromium === false ? '' : `: ${noChromium}`}`, () => {
    let browser: Browser;
    let device: Device;
    beforeAll(async () => {
      [browser, device] = await Promise.all([launchChromium(), openDevice('cpu')]);
    });
    afterAll(async () => {
      await Promise.all([browser.close(), device.close()]);
    });

    test('S1245 it draws the operations of each stream as they end, forgets old ones, and tells the end', async () => {
      const server = await serveTimeline(device, { seconds: 1 });
      const page = await browser.newPage();
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      // This test reads the canvas often.
      page.on('console', (message) => message.text().startsWith('Canvas2D:') || complaints.push(message.text()));
      page.on('request', (request) => request.url().startsWith(server.url) || complaints.push(request.url()));
      await page.goto(server.url);
      await page.locator('#state', { hasText: /^live$/ }).waitFor();
      const stream = device.createStream({ label: MARKUP });
      using x = stream.zeros([1 << 20]);
      await x.read();
      const row = page.locator('#streams tr', { hasText: MARKUP });
      await row.waitFor();
      expect(await page.title()).toBe('Millrace live');
      const counts = (): Promise<number> => page.evaluate('[...rows.values()].reduce((sum, { slices }) => sum + slices.length, 0)');
      /** Pixels of the canvas that are coloured: neither grey nor clear. */
      const coloured = (): Promise<number> =>
        page.evaluate(`(() => {
        const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
        let count = 0;
        for (let at = 0; at < data.length; at += 4) count += Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 60;
        return count;
      })()`);
      const goOn = { is: true };
      const working = (async () => {
        while (goOn.is) {
          stream.fill(x, 1);
          await x.read();
        }
      })();
      await expect.poll(coloured, { timeout: 10_000 }).toBeGreaterThan(100);
      await page.keyboard.press(' ');
      await page.locator('#state', { hasText: 'paused' }).waitFor();
      await page.keyboard.press(' ');
      goOn.is = false;
      await working;
      await expect.poll(counts, { timeout: 10_000 }).toBe(0);
      // An hour of messages, ten a second, from streams that come and go: only the last second stays.
      const left = (await page.evaluate(`(() => {
        const nodes = document.querySelectorAll('*').length;
        const slices = (now) => Array.from({ length: 20 }, (_, n) => ['fill', 'x', now - 5 * n - 4, now - 5 * n, 1]).reverse();
        let nowMs = program.nowMs;
        for (let n = 0; n < 36000; n++) {
          nowMs += 100;
          const stream = 'stream ' + Math.floor(n / 100);
          const devices = [{ device: 'cpu:0', name: 'a', state: 'open', operationsPerSecond: 1, pending: 1, streams: [{ stream, pending: 1 }] }];
          take({ pid: 1, title: 't', nowMs, devices, rows: [{ device: 'cpu:0', stream, slices: slices(nowMs) }] });
        }
        return [rows.size, [...rows.values()].reduce((sum, one) => sum + one.slices.length, 0), document.querySelectorAll('*').length - nodes];
      })()`)) as [number, number, number];
      expect(left[0]).toBeLessThanOrEqual(2);
      expect(left[1]).toBeLessThan(500);
      expect(left[2]).toBeLessThan(20);
      await server.close();
      await page.locator('#state.bad', { hasText: 'the program does not serve any more' }).waitFor();
      expect(complaints).toEqual([]);
      await page.close();
      await stream.close();
    }, 120_000);
  });
});
