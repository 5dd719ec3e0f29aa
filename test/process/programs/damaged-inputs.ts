// Gives damaged input to what reads the input of others. A reader must refuse it as its documentation says, or take it: another error, or
// one that nobody catches, ends this program with the input.
//   node --import tsx damaged-inputs.ts <reader, or all> <inputs; of all, a share for readers that take longer> <seed>
import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hub } from '../../../src/collectives/join/hub.js';
import { Link, proof } from '../../../src/collectives/join/link.js';
import { openSourceMap } from '../../../src/compiler/diagnostics/source-map.js';
import { checkDeviceToken, deviceToken } from '../../../src/core/base/device-token.js';
import { ArgumentError, UnavailableError } from '../../../src/core/base/errors.js';
import { arrayToken, checkArrayToken } from '../../../src/core/memory/array-token.js';
import { parseLog } from '../../../src/toolchain/base/diagnostics.js';
import { readableLog } from '../../../src/toolchain/base/readable-log.js';
import { asImageFile, readImage } from '../../../src/toolchain/images/cache.js';
import { isManifest } from '../../../src/toolchain/images/prebuilt-images.js';
import { packImages, ShippedImages } from '../../../src/toolchain/images/shipped-images.js';

const [which = 'all', count = '1000', seed = '1'] = process.argv.slice(2);

let state = Number(seed) >>> 0 || 1;
function below(end: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % end;
}
const oneOf = <T>(list: readonly T[]): T => list[below(list.length)]!;

const ODD_TEXTS = [
  '',
  '0',
  '-1',
  '4294967296',
  '1e309',
  '\0',
  '"',
  '{',
  ']',
  '\\u0000',
  '../../etc/passwd',
  '__proto__',
  '\ud800',
  '\n'.repeat(40),
];
function damagedBytes(sample: Uint8Array): Buffer {
  let bytes = Buffer.from(sample);
  for (let n = 1 + below(4); n > 0; n--) {
    const at = below(bytes.length + 1);
    const to = Math.min(bytes.length, at + 1 + below(16));
    switch (below(6)) {
      case 0:
        if (at < bytes.length) bytes[at] = below(256);
        break;
      case 1:
        bytes = bytes.subarray(0, at);
        break;
      case 2:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]);
        break;
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]);
        break;
      case 4:
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(oneOf(ODD_TEXTS)), bytes.subarray(at)]);
        break;
      default:
        for (let each = at; each < to; each++) bytes[each] = oneOf([0, 255, 127, 128]);
    }
  }
  return bytes;
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
/** What may stand in place of a value. Objects cannot be converted to text, which a reader may try. */
function oddValue(): Json {
  const values: Json[] = [
    null,
    true,
    -1,
    0.5,
    2 ** 53,
    1e308,
    [],
    [[]],
    {},
    { toString: 1, valueOf: 1 },
    { length: 2 ** 32 },
    oneOf(ODD_TEXTS),
  ];
  return oneOf(values);
}
/** With one value or more replaced, lost, or twice there. */
function damagedJson(value: Json): Json {
  if (below(6) === 0) return oddValue();
  if (Array.isArray(value) && value.length > 0) {
    const at = below(value.length);
    if (below(8) === 0) return value.filter((_, n) => n !== at);
    if (below(8) === 0) return [...value, ...value];
    return value.map((each, n) => (n === at ? damagedJson(each) : each));
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const names = Object.keys(value);
    if (names.length === 0) return oddValue();
    const name = oneOf(names);
    if (below(8) === 0) return Object.fromEntries(Object.entries(value).filter(([each]) => each !== name));
    return { ...value, [name]: damagedJson(value[name]!) };
  }
  return oddValue();
}
const plain = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json;

/** Runs what may throw an error of this kind only. */
function refusing(kind: abstract new (...args: never[]) => Error, call: () => unknown): void {
  try {
    call();
  } catch (error) {
    if (!(error instanceof kind)) throw error;
  }
}

/** A socket that keeps what is written and is given what comes. */
class FakeSocket extends EventEmitter {
  written: Buffer[] = [];
  isOpen = true;
  remoteAddress = '127.0.0.1';
  setNoDelay(): void {}
  cork(): void {}
  uncork(): void {}
  unref(): void {}
  write(bytes: Uint8Array): void {
    this.written.push(Buffer.from(bytes));
  }
  end(): void {
    this.isOpen = false;
  }
  destroy(): void {
    this.isOpen = false;
    this.emit('close');
  }
  /** The header of the first message. */
  get first(): Record<string, string> {
    const all = Buffer.concat(this.written);
    return JSON.parse(all.subarray(12, 12 + all.readUInt32LE(0)).toString()) as Record<string, string>;
  }
}
const asSocket = (socket: FakeSocket): Socket => socket as unknown as Socket;
function message(header: Json, bytes: Uint8Array = new Uint8Array()): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(12);
  prefix.writeUInt32LE(text.length, 0);
  prefix.writeDoubleLE(bytes.length, 4);
  return Buffer.concat([prefix, text, bytes]);
}
/** In pieces, as a network gives them. */
function arrives(socket: FakeSocket, bytes: Buffer): void {
  for (let at = 0; at < bytes.length && socket.isOpen; ) {
    const to = at + 1 + below(bytes.length);
    socket.emit('data', bytes.subarray(at, to));
    at = to;
  }
}
const SECRET = 'secret';
function openHub(): Hub {
  return new Hub({ expected: [0, 1, 2], size: 3, generation: 0, secret: SECRET, timeoutMs: 60_000, makeId: () => undefined });
}
function hello(socket: FakeSocket, rank: number): Json {
  const { nonce } = socket.first;
  return {
    type: 'hello',
    rank,
    size: 2,
    generation: 0,
    nonce: 'abc',
    port: 0,
    kind: 'cpu',
    proof: proof(SECRET, 'rank', nonce!, 'abc', rank, 2),
  };
}
function greeted(hub: Hub): FakeSocket {
  const socket = new FakeSocket();
  hub.greet(asSocket(socket));
  return socket;
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-damaged-'));
const file = join(folder, 'file');
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const device = plain(
  deviceToken({ device: 'cpu:0', address: { process: process.pid, thread: 1, channel: 2, key: 'k' }, ordering: 'tracked' }),
);
const array = plain(
  arrayToken({
    dtype: 'f32',
    shape: [2, 3],
    device: 'cpu:0',
    key: 'k',
    strides: [3, 1],
    handle: 7,
    byteOffset: 0,
    storageBytes: 24,
    uses: [{ channel: 1, stream: 2, ticket: 3 }],
  }),
);
const map = plain({
  version: 3,
  sources: ['a.ts'],
  sourcesContent: ['let x = 1;\nx;\n'],
  sourceRoot: '',
  names: ['x'],
  mappings: 'AAAA,IAAIA;AACJ',
});
const sections = plain({ version: 3, sections: [{ offset: { line: 0, column: 0 }, map }] });
const manifest = plain({
  format: 1,
  package: 'p',
  targets: ['x86-64'],
  images: [{ file: 'a', kernel: 'b', target: 'c', compiler: 'd' }],
  checked: ['a'],
});
const image = asImageFile(Buffer.from('an image of a kernel'));
const shipped = packImages(
  ['a', 'b', 'c'].map((name) => ({ file: name, content: Buffer.from(name.repeat(300_000)) })),
  { package: 'p', compiler: 'g++', targets: ['x86-64'] },
);
const LOG = `/tmp/x/kernel.cu:3:7: error: expected ';' before 'y'
    3 |   int x y;
      |       ^
kernel.cu(4): error: identifier "q" is undefined
    q = 1;
    ^
/usr/include/math.h:10:2:   required from here
/usr/bin/ld: undefined reference to \`f(float*)'
`;
const own = { users: [process.getuid?.() ?? 0], groups: [] } as unknown as Parameters<typeof readImage>[1];

/** Each gives a reader one input. */
const READERS: Readonly<Record<string, () => void>> = {
  'device tokens'() {
    refusing(ArgumentError, () => checkDeviceToken(damagedJson(device)));
  },
  'array tokens'() {
    refusing(ArgumentError, () => checkArrayToken(damagedJson(array)));
  },
  'source maps'() {
    const json = JSON.stringify(damagedJson(oneOf([map, sections])));
    const text = below(2) === 0 ? json : damagedBytes(Buffer.from(json)).toString('latin1');
    const mapUrl = `data:application/json;base64,${Buffer.from(text).toString('base64')}`;
    const find = openSourceMap({ url: '/a.js', mapUrl, source: 'x', start: 0, firstLine: 0, firstColumn: 0 });
    find?.({ line: below(3), column: below(9) });
  },
  'manifests of images'() {
    const found = damagedJson(manifest);
    if (isManifest(found)) found.images.map((each) => each.file.length);
  },
  'images of the cache'() {
    writeFileSync(file, damagedBytes(image), { mode: 0o700 });
    refusing(Error, () => readImage(file, own));
  },
  'images of the package'() {
    writeFileSync(file, damagedBytes(shipped.subarray(0, 400 + below(shipped.length))));
    let images: ShippedImages | undefined;
    refusing(UnavailableError, () => (images = new ShippedImages(file)));
    images?.isOf('p');
    for (const name of ['a', 'b', 'c', 'd']) refusing(Error, () => images?.find(name));
  },
  'logs of compilers'() {
    const text = damagedBytes(Buffer.from(LOG.repeat(1 + below(3)))).toString('latin1');
    parseLog(text);
    readableLog(text);
  },
  'strangers of a store'() {
    const hub = openHub();
    const socket = greeted(hub);
    const whole = hello(socket, 1);
    const bytes = below(2) === 0 ? message(damagedJson(whole)) : damagedBytes(message(whole));
    arrives(socket, bytes);
    hub.close();
  },
  'ranks of a store'() {
    const hub = openHub();
    const ranks = [0, 1, 2].map((rank) => {
      const socket = greeted(hub);
      arrives(socket, message(hello(socket, rank)));
      return socket;
    });
    const part = { type: 'part', key: 'all:1', ranks: [0, 1, 2], facts: 'allReduce of f32', lengths: [4, 4, 4], isForAll: false };
    for (const socket of ranks) {
      const header = below(3) === 0 ? part : damagedJson(part);
      arrives(socket, below(4) === 0 ? damagedBytes(message(header, new Uint8Array(12))) : message(header, new Uint8Array(12)));
    }
    hub.close();
  },
  'answers of a store'() {
    const socket = new FakeSocket();
    const link = new Link(asSocket(socket));
    if (below(2) === 0) link.trust();
    link.listener = () => {};
    arrives(socket, damagedBytes(Buffer.concat([message({ type: 'challenge', nonce: 'n', generation: 0 }), message({ type: 'pong' })])));
  },
};

/** Of the inputs, where one takes longer than a few microseconds: files are written first, and ranks greet the store. */
const SHARES: Readonly<Record<string, number>> = {
  'device tokens': 0.5,
  'array tokens': 0.5,
  'source maps': 0.25,
  'images of the cache': 0.001,
  'images of the package': 0.001,
  'logs of compilers': 0.25,
  'strangers of a store': 0.1,
  'ranks of a store': 0.03,
  'answers of a store': 0.25,
};
const chosen = which === 'all' ? Object.keys(READERS) : [which];
for (const name of chosen) {
  const read = READERS[name];
  if (read === undefined) throw new Error(`There is no reader ${name}; there are ${Object.keys(READERS).join(', ')}.`);
  const started = performance.now();
  const inputs = Math.ceil(Number(count) * (which === 'all' ? (SHARES[name] ?? 1) : 1));
  for (let n = 0; n < inputs; n++) {
    const before = state;
    try {
      read();
    } catch (error) {
      console.log(`${name}, input ${n}, state ${before}`);
      throw error;
    }
    // Timers of a store that is closed must not gather.
    if (n % 1000 === 999) await new Promise((resolve) => setImmediate(resolve));
  }
  console.log(JSON.stringify({ reader: name, inputs, seconds: Number(((performance.now() - started) / 1000).toFixed(2)) }));
}
process.exit(0);
