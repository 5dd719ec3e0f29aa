// Chapter 3: which platform APIs take memory of the library. The rows are those of the table in docs/semantics.md.
import { createHash, webcrypto } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import type { Device } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

type Bytes = Uint8Array;
/** Web APIs that this project's types of Node do not declare. */
type Web = {
  readonly Response: new (body: unknown) => { arrayBuffer(): Promise<ArrayBuffer> };
  readonly fetch: (url: string, init: object) => Promise<{ arrayBuffer(): Promise<ArrayBuffer> }>;
};
const { Response, fetch } = globalThis as unknown as Web;
const TEXT = readFileSync(path.resolve(import.meta.dirname, '../../../docs/semantics.md'), 'utf8');

/** The platform API of each row of the table, as a function that returns the bytes that it received. */
const APIS: Readonly<Record<string, (bytes: Bytes) => unknown>> = {
  'new Response(x)': async (x) => new Uint8Array(await new Response(x).arrayBuffer()),
  'fetch(url, { body: x })': echoed,
  'crypto.subtle.digest(name, x)': async (x) => new Uint8Array(await webcrypto.subtle.digest('SHA-256', x as Uint8Array<ArrayBuffer>)),
  'ReadableStream of bytes: enqueue(x)': enqueued,
  'structuredClone(x, { transfer: [x.buffer] })': (x) => structuredClone(x, { transfer: [x.buffer as ArrayBuffer] }),
  'structuredClone(x), postMessage(x)': async (x) => {
    expect([...structuredClone(x)]).toEqual([...x]);
    return posted(x);
  },
  'crypto.createHash(name).update(x)': (x) => createHash('sha256').update(x).digest(),
  'fs.writeFile(file, x)': written,
  'new Blob([x])': async (x) => new Uint8Array(await new Blob([x as Uint8Array<ArrayBuffer>]).arrayBuffer()),
  'new TextDecoder().decode(x)': (x) => new TextEncoder().encode(new TextDecoder().decode(x)),
  'zlib.gzipSync(x)': (x) => gunzipSync(gzipSync(x)),
};

/** The first two columns of the table: the API, and what it does with `pinned.data`. */
function tableRows(): (readonly [api: string, shared: string])[] {
  const rows = TEXT.split('\n').filter((line) => /^\| .* \| (?:takes|refuses)/.test(line));
  return rows.map((line) => line.split(' | ')).map(([api, shared]) => [api!.slice(2).replaceAll('`', ''), shared!] as const);
}

const VALUES = Array.from({ length: 300 }, (_, n) => 32 + (n % 90));

defineChapter((target) => {
  describe('3 memory: platform APIs', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S367', 'read of a pinned array is a plain copy of its present elements', async () => {
      const { device } = chapter;
      using pinned = device.pinned([2, 3], 'f64');
      using x = device.full([2, 3], 1.5, 'f64');
      await device.stream.copy(pinned, x).done;
      const host = pinned.read();
      expect(host).toEqual(new Float64Array(6).fill(1.5));
      expect([host.buffer instanceof ArrayBuffer, host.buffer.byteLength, host.byteOffset]).toEqual([true, 48, 0]);
      device.stream.fill(x, 2);
      await device.stream.copy(pinned, x).done;
      expect([host[0], pinned.data[0], pinned.subarray(4).read()]).toEqual([1.5, 2, new Float64Array([2, 2])]);
      host.fill(9);
      expect(pinned.data[0]).toBe(2);
      expect(pinned.read()).not.toBe(pinned.read());
    });

    rule('S367', 'the same holds for memory that the caller pinned, of any class', () => {
      const { device } = chapter;
      const data = Buffer.from(new SharedArrayBuffer(16), 4, 8).fill(3);
      using pinned = device.pin(data as unknown as Uint8Array<SharedArrayBuffer>);
      const host = pinned.read();
      data.fill(4);
      expect([host instanceof Uint8Array, Buffer.isBuffer(host), [...host]]).toEqual([true, false, Array.from({ length: 8 }, () => 3)]);
    });

    rule('S368', 'the table in the documentation has the tested rows', () => {
      expect(
        tableRows()
          .map(([api]) => api)
          .toSorted(),
      ).toEqual(Object.keys(APIS).toSorted());
    });

    for (const [api, call] of Object.entries(APIS)) {
      rule('S368', `${api} takes what read returns, and pinned.data as the table says`, async (context) => {
        const { device } = chapter;
        const expected = await call(Uint8Array.from(VALUES));
        for (const read of [readOfArray, readOfPinned]) expect(await call(await read(device))).toEqual(expected);
        const [, shared] = tableRows().find(([name]) => name === api)!;
        // Later versions of Node refuse more.
        if (shared.startsWith('takes') && !process.version.startsWith('v20.'))
          context.skip(`The table is of Node 20, not ${process.version}.`);
        using pinned = device.pinned(VALUES.length, 'u8');
        pinned.data.set(VALUES);
        const outcome = await (async () => call(pinned.data))().then(
          (value) => ({ value }),
          (error: Error) => ({ error: error.name }),
        );
        expect(outcome).toEqual(shared.startsWith('takes') ? { value: expected } : { error: 'TypeError' });
      });
    }
  });
});

async function readOfArray(device: Device): Promise<Bytes> {
  using x = device.from(Uint8Array.from(VALUES));
  return x.read();
}

function readOfPinned(device: Device): Bytes {
  using pinned = device.pinned(VALUES.length, 'u8');
  pinned.data.set(VALUES);
  return pinned.read();
}

async function echoed(body: Bytes): Promise<Bytes> {
  const server = createServer((request, response) => request.pipe(response)).listen(0, '127.0.0.1');
  try {
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return new Uint8Array(await (await fetch(url, { method: 'POST', body })).arrayBuffer());
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function enqueued(bytes: Bytes): Promise<unknown> {
  const stream = new ReadableStream({
    type: 'bytes',
    start(controller): void {
      controller.enqueue(bytes as Uint8Array<ArrayBuffer>);
    },
  });
  return (await stream.getReader().read()).value;
}

function posted(bytes: Bytes): Promise<unknown> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port2.once('message', (message) => {
      port2.close();
      resolve(message);
    });
    port1.postMessage(bytes);
  });
}

async function written(bytes: Bytes): Promise<Bytes> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-platform-'));
  try {
    const file = path.join(folder, 'x');
    await writeFile(file, bytes);
    return new Uint8Array(await readFile(file));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
