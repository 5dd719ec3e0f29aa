// An argument behind the last one of any public function is refused: it would be dropped, and with it what the caller wants.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import * as collectives from '../../../src/collectives/index.js';
import { LocalCommunicator } from '../../../src/collectives/local-communicator.js';
import * as millrace from '../../../src/index.js';
import { Partition } from '../../../src/core/api/partition.js';
import * as operations from '../../../src/ops/index.js';
import * as queue from '../../../src/queue/index.js';
import * as recording from '../../../src/recording/index.js';
import { fixture } from './fake-channel.js';

type Any = (...args: readonly unknown[]) => unknown;

/** More arguments than any function takes; the last one is not undefined. */
const ARGUMENTS = [...Array.from({ length: 8 }), 'surplus'];
/** Functions that take any number of values, or one each parameter of another function, or none at all. */
const OPEN = ['print', 'overlap', 'launchGraph', 'arange', 'diagnostics'];
/** Methods that take any number of values, or count them themselves. */
const OPEN_METHODS = ['compile', 'view', 'item', 'launch', 'record', 'toJSON', '@@observable'];

async function refusalOf(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error;
  }
}

const isClass = (value: Any): boolean => Function.prototype.toString.call(value).startsWith('class');
const isFunction = (value: unknown): value is Any => typeof value === 'function' && !isClass(value as Any);
const SURPLUS = { name: 'ArgumentError', argument: 'surplus', value: 'surplus' };

const API = new URL('../../../src/core/api/', import.meta.url);
/** Names behind the comments that keep a method out of the declarations. */
const INTERNAL = readdirSync(API).flatMap((file) =>
  Array.from(
    readFileSync(new URL(file, API), 'utf8').matchAll(/@internal(?:(?!\*\/)[^])*\*\/\s+(?:(?:async|override|protected) )*([\w$]+)[(<]/g),
    ([, name]) => name!,
  ),
);

/** Of an object of the library. */
function publicMethods(object: object): readonly string[] {
  const names: string[] = [];
  for (let at: object = object; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    const all = Object.entries(Object.getOwnPropertyDescriptors(at)).filter(([, { value }]) => typeof value === 'function');
    names.push(...all.map(([name]) => name).filter((name) => name !== 'constructor' && !INTERNAL.includes(name)));
  }
  return names;
}

describe('S405 a surplus argument is refused', () => {
  for (const [entry, exported] of Object.entries({ millrace, operations, recording, queue, collectives })) {
    test.for(Object.entries(exported).filter(([name, value]) => isFunction(value) && !OPEN.includes(name)))(
      `${entry}: %s`,
      async ([, value]) => {
        expect(await refusalOf(() => (value as Any)(...ARGUMENTS))).toMatchObject(SURPLUS);
      },
    );
  }

  const { device } = fixture();
  const { stream } = device;
  const array = device.zeros(4);
  const graph = stream.capture((s) => void s.fill(array, 1));
  const communicator = new LocalCommunicator([device, fixture().device]);
  /** With the most arguments that each takes. */
  const arrays = { empty: 2, zeros: 2, ones: 2, full: 3, from: 2 };
  const conditions = { captureIf: 3, captureWhile: 2, captureSwitch: 2 };
  const methods: readonly (readonly [string, object, Readonly<Record<string, number>>])[] = [
    ['stream', stream, { copy: 3, copyBatch: 2, fill: 2, ...arrays, launch: 3, capture: 3, createTexture: 1, ...conditions, run: 2 }],
    ['stream', stream, { waitEvent: 1, waitStream: 1, host: 2, hold: 2, external: 2, ready: 1, synchronize: 1, close: 0 }],
    [
      'array',
      array,
      { transpose: 1, reshape: 1, subarray: 2, clone: 1, read: 1, list: 1, toString: 1, toReadable: 1, share: 0, ipcHandle: 0 },
    ],
    ['pinned', device.pinned(4), { read: 0, list: 1, toString: 1, subarray: 2 }],
    ['device', device, { ...arrays, run: 1, createStream: 1, createEvent: 1, pinned: 2, pin: 1, synchronize: 1, setCurrentStream: 2 }],
    [
      'device',
      device,
      { wrapStream: 2, adopt: 2, interprocess: 2, openIpcEvent: 1, openIpcArray: 3, isSameDevice: 1, share: 0, inspect: 0 },
    ],
    [
      'device',
      device,
      { createTexture: 1, whatAreYouWaitingFor: 0, scope: 2, telemetry: 0, telemetry$: 1, partition: 1, close: 1, destroy: 1 },
    ],
    ['partition', new Partition(device.context, 1, 1), { close: 0 }],
    ['scope', device.scope(), { ...arrays, pinned: 2, run: 1, keep: 1 }],
    ['event', device.createEvent(), { synchronize: 1, ipcHandle: 0 }],
    ['graph', graph, { upload: 1, update: 1, nodeTimes: 1, toDot: 0, toSvg: 0, close: 0 }],
    ['communicator', communicator, { allReduce: 2, reduce: 2, broadcast: 2, allGather: 2, reduceScatter: 2, allToAll: 2, send: 3 }],
    ['communicator', communicator, { group: 1, barrier: 1, abort: 0, close: 0 }],
  ];
  test.for(methods.flatMap(([what, object, counts]) => Object.entries(counts).map(([name, most]) => ({ what, object, name, most }))))(
    '$what: $name',
    async ({ object, name, most }) => {
      const given = [...Array.from({ length: most }), 'surplus'];
      expect(await refusalOf(() => (object as Readonly<Record<string, Any>>)[name]!(...given))).toMatchObject(SURPLUS);
    },
  );

  test('what counts its values itself says which there are', async () => {
    const value = 'surplus';
    for (const call of [() => (graph.launch as Any)(undefined, value), () => (stream.record as Any)(undefined, value)])
      expect(await refusalOf(call)).toMatchObject({ name: 'ArgumentError', value });
    for (const call of [() => array.view(0, 0), () => array.item(0, 0)])
      expect(await refusalOf(call)).toMatchObject({ name: 'ArgumentError' });
  });

  test.for([...new Set(methods.map(([what]) => what))])('every method of the declarations is tested: %s', (what) => {
    const own = methods.filter(([name]) => name === what);
    const tested = own.flatMap(([, , counts]) => Object.keys(counts));
    expect(publicMethods(own[0]![1]).filter((name) => !tested.includes(name) && !OPEN_METHODS.includes(name))).toEqual([]);
  });

  test('undefined behind the last argument is none', async () => {
    expect((array.reshape as Any)([2, 2], undefined)).toMatchObject({ shape: [2, 2] });
    expect(await refusalOf(() => (operations.sum as unknown as Any)(array, { axis: 9 }, undefined))).toMatchObject({ argument: 'axis' });
  });
});
