// Chapter 10: what derives from a failed operation through graphs is failed when its promise settles, as in derived-failures.ts.
import { describe, expect } from 'vitest';
import { f32, i32, inout, input, output } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { isPositive, LENGTH, leaksOf, pick, plus, plusHere, withDerived, type Derived, type Takes } from '../../support/derived.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

type Case = (given: Derived, at: number) => Takes | Promise<Takes>;

/** The graphs are captured once for all runs. */
const GRAPH_CASES: Readonly<Record<string, (given: Derived) => { readonly once: Case; close(): Promise<unknown> }>> = {
  'a launch of a graph that reads what the kernel wrote': ({ device: { stream }, x, y, z, w }) => {
    const graph = stream.capture((s) => {
      s.launch(plus, LENGTH, { y, z });
      s.copy(w, z);
    });
    return {
      once: (_, at) => {
        stream.launch(pick, LENGTH, { x, at, y });
        return { launched: stream.launch(graph), z: z.read(), w: w.read() };
      },
      close: () => graph.close(),
    };
  },
  'a graph whose first node fails, and what comes after it': ({ device: { stream }, streams: [other], x, y, z, w }) => {
    const graph = stream.capture({ at: i32 }, (s, { at }) => {
      s.launch(pick, LENGTH, { x, at, y });
      s.launch(plus, LENGTH, { y, z });
    });
    return {
      once: (_, at) => {
        const launched = stream.launch(graph, { at });
        const after = other!.launch(plus, LENGTH, { y: z, z: w });
        return { launched, after, y: y.read(), z: z.read(), w: w.read() };
      },
      close: () => graph.close(),
    };
  },
  'a graph that overwrites a part: kernel, fill, copy': ({ device: { stream }, x, y, z }) => {
    const graph = stream.capture((s) => {
      s.launch(plus, 10, { y: x.subarray(0, 10), z: y.subarray(60, 70) });
      s.fill(y.subarray(0, 10), 1);
      s.copy(y, x, { dstOffset: 40, count: 10 });
    });
    const reading = stream.capture((s) => {
      s.launch(plus, 10, { y: x.subarray(0, 10), z: y.subarray(60, 70) });
      s.launch(plus, LENGTH, { y, z });
    });
    return {
      once: (_, at) => {
        stream.launch(pick, LENGTH, { x, at, y });
        stream.launch(graph);
        return { y: y.read(), second: stream.launch(reading), z: z.read() };
      },
      close: () => Promise.all([graph.close(), reading.close()]),
    };
  },
  'arrays that the graph makes, and host functions': ({ device: { stream }, x, y, z }) => {
    let called = 0;
    let made = y;
    const graph = stream.capture({ at: i32 }, (s, { at }) => {
      made = s.empty(LENGTH);
      s.launch(pick, LENGTH, { x, at, y: made });
      s.launch(plus, LENGTH, { y: made, z });
      s.host(() => called++);
    });
    return {
      once: (_, at) => {
        const launched = stream.launch(graph, { at });
        const before = called;
        const settled = Promise.resolve(launched.done).finally(() => {
          if (called !== before + 1) throw new Error(`The host function was called ${called - before} times.`);
        });
        return { settled, made: made.read(), z: z.read() };
      },
      close: async () => {
        made[Symbol.dispose]();
        await graph.close();
      },
    };
  },
  'a graph that was updated, and one in another': ({ device: { stream }, x, y, z, w }) => {
    const graph = stream.capture((s) => void s.launch(plus, LENGTH, { y: x, z }));
    graph.update((s) => void s.launch(plus, LENGTH, { y, z }));
    const outer = stream.capture((s) => {
      s.launch(graph);
      s.copy(w, z);
    });
    return {
      once: (_, at) => {
        stream.launch(pick, LENGTH, { x, at, y });
        return { launched: stream.launch(graph), z: z.read(), outer: stream.launch(outer), w: w.read() };
      },
      close: () => Promise.all([graph.close(), outer.close()]),
    };
  },
  'a chain of graphs on two streams': ({ device: { stream }, streams: [other], x, y, z, w }) => {
    const first = stream.capture({ at: i32 }, (s, { at }) => void s.launch(pick, LENGTH, { x, at, y }));
    const second = other!.capture((s) => void s.launch(plus, LENGTH, { y, z }));
    const third = stream.capture((s) => {
      s.copy(w, z);
      s.launch(plusHere, LENGTH, { x: w });
    });
    return {
      once: (_, at) => {
        stream.launch(first, { at });
        const takes = { second: other!.launch(second), third: stream.launch(third), read: w.read() };
        return takes;
      },
      close: () => Promise.all([first, second, third].map((graph) => graph.close())),
    };
  },
  'array slots': ({ device: { stream }, x, y, z, w }) => {
    const picked = stream.capture({ y: output(f32), at: i32 }, (s, { y: to, at }) => void s.launch(pick, LENGTH, { x, at, y: to }));
    const added = stream.capture({ y: input(f32), z: inout(f32) }, (s, slots) => void s.launch(plus, LENGTH, slots as never));
    return {
      once: (_, at) => {
        stream.launch(picked, { y, at });
        const first = stream.launch(added, { y, z });
        const second = stream.launch(added, { y: z, z: w });
        return { first, second, read: w.read() };
      },
      close: () => Promise.all([picked.close(), added.close()]),
    };
  },
  'a condition that derives from the failure, and bodies that read it': ({ device: { stream }, x, y, z, w }) => {
    const flag = stream.zeros(1, 'i32');
    const graph = stream.capture((s) => {
      s.launch(isPositive, 1, { x: z, flag });
      s.captureIf(
        flag,
        (body) => void body.fill(w, 1),
        (body) => void body.fill(w, 2),
      );
    });
    return {
      once: (_, at) => {
        stream.launch(pick, LENGTH, { x, at, y });
        stream.launch(plus, LENGTH, { y, z });
        return { launched: stream.launch(graph), w: w.read(), flag: flag.read() };
      },
      close: async () => {
        flag[Symbol.dispose]();
        await graph.close();
      },
    };
  },
  'launches of one graph in turn': ({ device: { stream }, streams, x, y, z }) => {
    const graph = stream.capture((s) => {
      s.launch(plusHere, LENGTH, { x: z });
      s.launch(plusHere, LENGTH, { x: z });
    });
    return {
      once: (_, at) => {
        stream.launch(pick, LENGTH, { x, at, y });
        stream.launch(plus, LENGTH, { y, z });
        const launched = Array.from({ length: 6 }, (__, n) => [`launch ${n}`, streams[n % 3]!.launch(graph)] as const);
        return { ...Object.fromEntries(launched), read: z.read() };
      },
      close: () => graph.close(),
    };
  },
};

defineChapter((target) => {
  describe('10 graphs: what derives from a failure', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    for (const [name, make] of Object.entries(GRAPH_CASES)) {
      rule('S1014', `nothing that derives from a failed kernel is given out: ${name}`, async () => {
        await withDerived(chapter.device, async (given) => {
          await chapter.device.compile(pick, plus, plusHere, isPositive);
          const { once, close } = make(given);
          try {
            expect(await leaksOf(given, once)).toEqual({});
          } finally {
            await close();
          }
        });
      });
    }
  });
});
