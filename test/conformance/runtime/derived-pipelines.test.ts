// Chapter 9: pipelines and services hand on nothing that derives from a failed kernel, and each answer belongs to its own item.
import { lastValueFrom, of, toArray } from 'rxjs';
import { describe, expect } from 'vitest';
import { createBatcher, createLanes, download, launch, overlap, upload, type Device, type Lane } from 'millrace';
import { defineChapter } from '../../support/chapter.js';
import { LENGTH, otherThan, pick, plus, plusHere } from '../../support/derived.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';

const ITEMS = 300;
/** Every third item fails, with an index of its own. */
const isBad = (item: number): boolean => item % 3 === 1;
const indexOf = (item: number): number => (isBad(item) ? 5000 + item : item % LENGTH);

/** Stages whose result for a good item is an array of its number plus 2. */
const STAGES: Readonly<Record<string, (item: number, lane: Lane) => Promise<Float32Array>>> = {
  'an async function that reads': async (item, lane) => {
    const { stream } = lane;
    const [x, y, z] = [lane.full(LENGTH, item), lane.empty(LENGTH), lane.empty(LENGTH)];
    stream.launch(pick, LENGTH, { x, at: indexOf(item), y });
    stream.launch(plus, LENGTH, { y, z });
    stream.launch(plusHere, LENGTH, { x: z });
    return z.read();
  },
  'a chain of operators': (item, lane) =>
    lastValueFrom(
      of(new Float32Array(LENGTH).fill(item)).pipe(
        upload(lane),
        launch(lane, plusHere, LENGTH, (x) => ({ x })),
        launch(lane, pick, LENGTH, (x) => ({ x: x.clone(lane.stream), at: indexOf(item), y: x })),
        launch(lane, plusHere, LENGTH, (x) => ({ x })),
        download(lane),
      ),
    ),
  'a copy to pinned memory': async (item, lane) => {
    const { stream } = lane;
    const [x, y, pinned] = [lane.full(LENGTH, item), lane.empty(LENGTH), lane.pinned(LENGTH)];
    stream.launch(pick, LENGTH, { x, at: indexOf(item), y });
    stream.launch(plusHere, LENGTH, { x: y });
    stream.launch(plusHere, LENGTH, { x: y });
    await stream.copy(pinned, y).done;
    return pinned.read();
  },
  'promises of a launch': async (item, lane) => {
    const { stream } = lane;
    const [x, y, z] = [lane.full(LENGTH, item), lane.empty(LENGTH), lane.empty(LENGTH)];
    const result = new Float32Array(LENGTH);
    stream.launch(pick, LENGTH, { x, at: indexOf(item), y });
    stream.launch(plus, LENGTH, { y, z });
    await stream.launch(plusHere, LENGTH, { x: z }).done;
    await stream.copy(result, z).done;
    return result;
  },
};

/** What is wrong with the answers to all items; `errors` has the rejections by item. */
function wrongOf(values: ReadonlyMap<number, Float32Array>, errors: ReadonlyMap<number, unknown>): Record<string, number> {
  const wrong: Record<string, number> = {};
  const note = (text: string): void => void (wrong[text] = (wrong[text] ?? 0) + 1);
  for (let item = 0; item < ITEMS; item++) {
    const value = values.get(item);
    if (values.has(item) && errors.has(item)) note('an item has a result and an error');
    if (!values.has(item) && !errors.has(item)) note('an item has neither a result nor an error');
    if (value !== undefined && isBad(item)) note('an item whose kernel failed has a result');
    if (value !== undefined && !isBad(item) && !value.every((one) => one === item + 2)) note('an item has the wrong numbers');
    if (errors.has(item)) {
      const other = isBad(item) ? otherThan(indexOf(item), errors.get(item)) : `of a good item: ${String(errors.get(item))}`;
      if (other !== undefined) note(other);
    }
  }
  return wrong;
}

async function builtOn(device: Device): Promise<Device> {
  await device.compile(pick, plus, plusHere);
  return device;
}

defineChapter((target) => {
  describe('9 pipelines: what derives from a failure', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);
    const items = Array.from({ length: ITEMS }, (_, item) => item);

    for (const [name, stage] of Object.entries(STAGES)) {
      rule('S914', `each item is delivered or skipped, never both, and no delivered value is of a failed kernel: ${name}`, async () => {
        const device = await builtOn(chapter.device);
        const errors = new Map<number, unknown>();
        const run = overlap(
          device,
          items,
          { depth: 4, onError: 'skip', onSkip: ({ item, error }) => void errors.set(item, error) },
          async (item, lane) => [item, await stage(item, lane)] as const,
        );
        const results = await lastValueFrom(run.pipe(toArray()));
        expect(wrongOf(new Map(results), errors)).toEqual({});
        expect([results.length, errors.size]).toEqual([(ITEMS * 2) / 3, ITEMS / 3]);
        expect(run.report()).toMatchObject({ items: (ITEMS * 2) / 3, skipped: ITEMS / 3 });
      });

      rule('S918', `each request is answered with its own numbers, or rejected with its own failure: ${name}`, async () => {
        const device = await builtOn(chapter.device);
        await using lanes = createLanes(device, { depth: 4, maxQueue: ITEMS }, stage);
        const ends = await Promise.allSettled(items.map((item) => lanes.run(item)));
        const values = new Map<number, Float32Array>();
        const errors = new Map<number, unknown>();
        for (const [item, end] of ends.entries()) {
          if (end.status === 'fulfilled') values.set(item, end.value);
          else errors.set(item, end.reason);
        }
        expect(wrongOf(values, errors)).toEqual({});
      });
    }

    rule('S914', 'a retry runs until the kernel of its own attempt succeeds', async () => {
      const device = await builtOn(chapter.device);
      let attempts = 0;
      const run = overlap(device, items, { depth: 4, onError: { retry: 3 } }, async (item, lane) => {
        attempts++;
        const [x, y, z] = [lane.full(LENGTH, item), lane.empty(LENGTH), lane.empty(LENGTH)];
        lane.stream.launch(pick, LENGTH, { x, at: lane.attempt <= item % 3 ? 5000 : 0, y });
        lane.stream.launch(plus, LENGTH, { y, z });
        return z.item(LENGTH - 1);
      });
      expect(await lastValueFrom(run.pipe(toArray()))).toEqual(items.map((item) => item + 1));
      expect(attempts).toBe(ITEMS * 2);
    });

    rule('S919', 'a batch with a failed kernel rejects its own requests and no others', async () => {
      const device = await builtOn(chapter.device);
      // A batch that has a bad request fails as a whole: each request says which batch it was in.
      const batches: (readonly number[])[] = [];
      await using batcher = createBatcher(
        device,
        { depth: 3, maxItems: 8, maxWaitMs: 0, maxQueue: ITEMS },
        async (batch: readonly number[], lane: Lane) => {
          batches.push(batch);
          const bad = batch.find((item) => item % 40 === 1);
          const x = lane.from(Float32Array.from(batch));
          const [y, z, w] = [lane.full(LENGTH, 1), lane.empty(batch.length), lane.empty(batch.length)];
          if (bad === undefined) lane.stream.copy(z, x);
          else lane.stream.launch(pick, batch.length, { x: y, at: 5000 + bad, y: z });
          lane.stream.launch(plus, batch.length, { y: z, z: w });
          return w.read();
        },
      );
      const ends = await Promise.allSettled(items.map((item) => batcher.run(item)));
      const wrong: string[] = [];
      for (const batch of batches) {
        const bad = batch.find((item) => item % 40 === 1);
        for (const item of batch) {
          const end = ends[item]!;
          const text =
            end.status === 'fulfilled'
              ? bad === undefined && end.value === item + 1
                ? undefined
                : `fulfilled with ${end.value}`
              : bad === undefined
                ? String(end.reason)
                : otherThan(5000 + bad, end.reason);
          if (text !== undefined) wrong.push(`${item} in [${batch.join()}]: ${text}`);
        }
      }
      expect(wrong).toEqual([]);
      expect(batches.flat().toSorted((a, b) => a - b)).toEqual(items);
    });
  });
});
