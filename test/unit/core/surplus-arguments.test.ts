// An argument behind the last one of any public function is refused: it would be dropped, and with it what the caller wants.
import { describe, expect, test } from 'vitest';
import * as millrace from '../../../src/index.js';
import * as operations from '../../../src/ops/index.js';
import * as recording from '../../../src/recording/index.js';
import { fixture } from './fake-channel.js';

type Any = (...args: readonly unknown[]) => unknown;

/** More arguments than any function takes; the last one is not undefined. */
const ARGUMENTS = [...Array.from({ length: 8 }), 'surplus'];
/** Functions that take any number of values, or one each parameter of another function, or none at all. */
const OPEN = ['print', 'overlap', 'launchGraph', 'arange', 'diagnostics'];

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

describe('S405 a surplus argument is refused', () => {
  for (const [entry, exported] of Object.entries({ millrace, operations, recording })) {
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
  /** With the most arguments that each takes. */
  const methods: readonly (readonly [string, object, Readonly<Record<string, number>>])[] = [
    ['stream', stream, { copy: 3, copyBatch: 2, fill: 2, empty: 2, zeros: 2, ones: 2, full: 3, from: 2, launch: 3 }],
    ['stream', stream, { waitEvent: 1, waitStream: 1, host: 2, hold: 2, external: 2 }],
    ['array', array, { transpose: 1, reshape: 1, subarray: 2, clone: 1, read: 1, list: 1, toString: 1, toReadable: 1 }],
    ['device', device, { run: 1, createStream: 1, createEvent: 1, pinned: 2, pin: 1, synchronize: 1, setCurrentStream: 2 }],
    ['device', device, { wrapStream: 2, adopt: 2, interprocess: 2, close: 1 }],
    ['event', device.createEvent(), { synchronize: 1 }],
  ];
  test.for(methods.flatMap(([what, object, counts]) => Object.entries(counts).map(([name, most]) => ({ what, object, name, most }))))(
    '$what.$name',
    async ({ object, name, most }) => {
      const given = [...Array.from({ length: most }), 'surplus'];
      expect(await refusalOf(() => (object as Readonly<Record<string, Any>>)[name]!(...given))).toMatchObject(SURPLUS);
    },
  );

  test('undefined behind the last argument is none', async () => {
    expect((array.reshape as Any)([2, 2], undefined)).toMatchObject({ shape: [2, 2] });
    expect(await refusalOf(() => (operations.sum as unknown as Any)(array, { axis: 9 }, undefined))).toMatchObject({ argument: 'axis' });
  });
});
