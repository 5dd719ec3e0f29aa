// Chapter 9: the asynchronous context (AsyncLocalStorage) in which user functions are called. Each is registered in the context
// 'mine', while the operation that causes its call is submitted in the context 'other', or in none.
import { AsyncLocalStorage } from 'node:async_hooks';
import diagnostics from 'node:diagnostics_channel';
import { describe, expect } from 'vitest';
import { ArgumentError, type Device, inout, kernel, u8 } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { chapterDevice, rulesOf, withDevice } from '../../support/rule.js';
import { eventually, rejectionOf } from '../../support/wait.js';

const storage = new AsyncLocalStorage<string>();
const context = (): string => storage.getStore() ?? 'none';
const mine = <T>(fn: () => T): T => storage.run('mine', fn);
const other = <T>(fn: () => T): T => storage.run('other', fn);
const none = <T>(fn: () => T): T => storage.run(undefined as never, fn);

const outside = kernel('outside_of_context', { x: inout(u8) }, ({ x }, { i }) => {
  x[i + 1_000_000] = 1;
});
const built = kernel('built_in_context', { x: inout(u8) }, ({ x }, { i }) => {
  x[i] = 41;
});

defineChapter((target) => {
  describe('9 observation: asynchronous contexts', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule('S937', 'functions of host and hold run in the context of their call', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const seen: string[] = [];
      const operations = [
        other(() => stream.host(() => seen.push(`other ${context()}`))),
        mine(() => stream.host(() => seen.push(`host ${context()}`))),
        mine(() =>
          stream.hold(
            async () => {
              seen.push(`hold ${context()}`);
              await Promise.resolve();
              seen.push(`later ${context()}`);
            },
            { timeoutMs: 30_000 },
          ),
        ),
        stream.host(() => seen.push(`none ${context()}`)),
      ];
      await other(() => Promise.all(operations.map(({ done }) => done)));
      expect(seen).toEqual(['other other', 'host mine', 'hold mine', 'later mine', 'none none']);
      await stream.close();
    });

    rule('S937', 'the `then` of the result of a host or hold function is called in that context too', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const seen: string[] = [];
      const thenable = (name: string): PromiseLike<void> =>
        ({
          get then() {
            seen.push(`${name} get ${context()}`);
            return (resolve: () => void) => {
              seen.push(`${name} call ${context()}`);
              resolve();
            };
          },
        }) as never;
      other(() => stream.host(() => undefined));
      mine(() => stream.hold(() => thenable('hold'), { timeoutMs: 30_000 }));
      const refused = rejectionOf(mine(() => stream.host((() => thenable('host')) as () => void).done));
      await other(() => stream.synchronize());
      await eventually('both are asked', () => seen.some((line) => line.startsWith('host call')));
      expect(seen.filter((line) => !line.endsWith(' mine'))).toEqual([]);
      expect(seen).toEqual(expect.arrayContaining(['hold get mine', 'hold call mine', 'host get mine', 'host call mine']));
      expect(await refused).toBeInstanceOf(ArgumentError);
      await stream.close();
    });

    rule('S937', "listeners of a hold's signal run in that context, at its timeout and when the caller's signal aborts", async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const seen: string[] = [];
      const aborter = new AbortController();
      const listening =
        (name: string) =>
        (signal: AbortSignal): Promise<void> => {
          signal.addEventListener('abort', () => seen.push(`${name} ${context()}`));
          if (name === 'abort') setImmediate(() => other(() => aborter.abort()));
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
        };
      const held = [
        mine(() => stream.hold(listening('timeout'), { timeoutMs: 1 })),
        mine(() => stream.hold(listening('abort'), { timeoutMs: 30_000, signal: aborter.signal })),
      ];
      await other(() => Promise.allSettled(held.map(({ done }) => done)));
      expect(seen).toEqual(['timeout mine', 'abort mine']);
      await stream.close();
    });

    rule('S937', 'observers of operations$, activity$ and errors$, and loops over operations, run in their own contexts', async () => {
      const { device } = chapter;
      const stream = device.createStream();
      const seen = new Map<string, string>();
      const subscriptions = mine(() => [
        stream.operations$.subscribe(() => seen.set('stream', context())),
        device.operations$.subscribe(() => seen.set('device', context())),
        stream.activity$.subscribe(({ phase }) => seen.set(phase, context())),
        device.errors$.subscribe(() => seen.set('errors', context())),
      ]);
      const looped = mine(async () => {
        for await (const operation of stream) {
          seen.set('loop', context());
          if (operation.kind === 'launch') break;
        }
      });
      await other(async () => {
        using x = stream.zeros(8, 'u8');
        stream.launch(outside, 8, { x });
        await stream.synchronize();
        await eventually('all of them are told', () => seen.size >= 7);
      });
      await looped;
      expect(Object.fromEntries(seen)).toEqual({
        stream: 'mine',
        device: 'mine',
        submitted: 'mine',
        finished: 'mine',
        failed: 'mine',
        errors: 'mine',
        loop: 'mine',
      });
      for (const subscription of subscriptions) subscription.unsubscribe();
      await stream.close();
    });
  });

  describe('9 observation: asynchronous contexts of devices', () => {
    const rule = rulesOf(target);

    rule(
      'S938',
      'diagnostics messages of operations come in the context of the submission, those of errors in that of openDevice',
      async () => {
        const seen: string[] = [];
        const hear = (name: string) => (): void => void seen.push(`${name} ${context()}`);
        const names = ['operation', 'error', 'device'] as const;
        const listeners = [
          ...names.map((name) => [`millrace:${name}`, hear(name)] as const),
          ['tracing:millrace:compile:asyncEnd', hear('build')] as const,
        ];
        for (const [name, listener] of listeners) diagnostics.subscribe(name, listener);
        try {
          await mine(() =>
            withDevice(target, {}, async (device) => {
              seen.length = 0;
              const work = async (fn: (device: Device) => unknown): Promise<void> => {
                await fn(device);
                await device.synchronize();
              };
              await other(() => work(() => device.compile(built)));
              await other(() =>
                work(() => {
                  using x = device.zeros(8, 'u8');
                  device.stream.launch(outside, 8, { x });
                }),
              );
              await other(() => eventually('the failure is told', () => seen.some((line) => line.startsWith('error'))));
              await none(() => work(() => device.stream.host(() => undefined)));
              other(() => void device.destroy());
              await eventually('the end is told', () => seen.some((line) => line.startsWith('device')));
            }),
          );
        } finally {
          for (const [name, listener] of listeners) diagnostics.unsubscribe(name, listener);
        }
        expect(seen.filter((line) => line.startsWith('build'))).toContain('build other');
        expect(new Set(seen.filter((line) => line.startsWith('operation')))).toEqual(new Set(['operation other', 'operation none']));
        expect(seen.filter((line) => /^(?:error|device)/.test(line))).toEqual(['error mine', 'device mine']);
      },
    );

    rule('S938', "listeners of a device's signal run in the context of openDevice", async () => {
      const seen: string[] = [];
      await mine(() =>
        withDevice(target, {}, async (device) => {
          other(() => device.signal.addEventListener('abort', () => seen.push(context())));
          await none(() => device.destroy());
        }),
      );
      expect(seen).toEqual(['mine']);
    });
  });
});
