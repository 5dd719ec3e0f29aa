// Chapter 11: products of matrices whose sizes lie around those of the tiles in which they are made.
import * as ops from 'millrace/ops';
import { describe, expect } from 'vitest';
import { defineChapter } from '../../support/chapter.js';
import { IS_LONG } from '../../support/long.js';
import { chapterDevice, rulesOf } from '../../support/rule.js';
import { eventually } from '../../support/wait.js';

defineChapter((target) => {
  describe('11 operations on arrays: products', () => {
    const rule = rulesOf(target);
    const chapter = chapterDevice(target);

    rule(
      'S1111',
      'on the CPU device, products of few rows or of one column are sums of vectors, and those of f16 are made of f32',
      async () => {
        const { device } = chapter;
        const labels: (string | undefined)[] = [];
        const seen = device.operations$.subscribe(({ label }) => labels.push(label));
        using square = device.ones([100, 100]);
        for (const [rows, columns] of [
          [1, 100],
          [3, 100],
          [100, 1],
          [100, 100],
        ] as const) {
          using product = ops.matmul(square.view([0, rows]), square.view(undefined, [0, columns]));
          expect((await product.read()).every((value) => value === 100)).toBe(true);
        }
        using half = device.ones([100, 100], 'f16');
        using product = ops.matmul(half, half.transpose());
        using wide = ops.astype(product, 'f32');
        expect((await wide.read()).every((value) => value === 100)).toBe(true);
        // Observers are told of the last operations after the read.
        await eventually('the operations are told', () => labels.includes('astype'));
        seen.unsubscribe();
        if (device.info.backend === 'cpu')
          expect([...new Set(labels.filter((label) => label !== undefined))]).toEqual(['dot', 'matmul', 'astype']);
      },
    );

    rule('S1111', 'few rows by the rows of another matrix give the bits of the turned product', async () => {
      const { device } = chapter;
      const numbers = ops.generator(12);
      for (const dtype of ['f32', 'f64'] as const) {
        using left = numbers.normal([2, 17, 60], { device, dtype });
        using right = numbers.normal([2, 130, 60], { device, dtype });
        using product = ops.matmul(left, right.transpose([0, 2, 1]));
        using turned = ops.matmul(right, left.transpose([0, 2, 1]));
        const [one, other] = await Promise.all([product.read(), turned.read()]);
        const at = (n: number): number => other[Math.floor(n / 2210) * 2210 + (n % 130) * 17 + (Math.floor(n / 130) % 17)]!;
        // A library may add in another order.
        const most = device.info.backend === 'cpu' && device.info.libraries.length === 0 ? 0 : 1e-4;
        expect(one.every((value, n) => Math.abs(value - at(n)) <= most)).toBe(true);
      }
    });

    rule('S1111', 'products of sizes around those of tiles, of operands in any order', async () => {
      const { device } = chapter;
      const numbers = ops.generator(11);
      // Operands that are read where they are and such that are copied to tiles first, tiles that end early, and long sums.
      // The short form takes every fifth of the sixty, which has each size, type and order; on the CPU every eleventh, which has each type and order.
      let at = 0;
      for (const [rows, inner, columns] of [
        [13, 40, 33],
        [49, 1025, 65],
        [60, 30, 300],
        [5, 2100, 40],
        [100, 50, 9],
        [20, 50, 101],
        [1, 70, 150],
        [3, 1025, 40],
        [300, 40, 1],
        [1, 9000, 1],
      ] as const) {
        for (const dtype of ['f32', 'f64', 'f16'] as const) {
          const whole = (shape: readonly number[]) => numbers.integers(-9, 10, shape, { device, dtype });
          // Sums of f16 are f32, and exact.
          const type = dtype === 'f16' ? 'f32' : dtype;
          for (const [turnsLeft, turnsRight] of [
            [false, false],
            [true, true],
          ] as const) {
            if (at++ % (target.name === 'cpu' ? 11 : 5) !== 0 && !IS_LONG) continue;
            using left = whole(turnsLeft ? [inner, rows] : [rows, inner]);
            using right = whole(turnsRight ? [columns, inner] : [inner, columns]);
            const [a, b] = [turnsLeft ? left.transpose() : left, turnsRight ? right.transpose() : right];
            using c = ops.matmul(a, b, { dtype: type });
            using wideA = ops.astype(a, type);
            using wideB = ops.astype(b, type);
            const [as, bs, cs] = await Promise.all([wideA.read(), wideB.read(), c.read()]);
            let wrong = 0;
            for (let i = 0; i < rows; i++) {
              for (let j = 0; j < columns; j++) {
                let sum = 0;
                for (let k = 0; k < inner; k++) sum += as[i * inner + k]! * bs[k * columns + j]!;
                if (cs[i * columns + j] !== sum) wrong++;
              }
            }
            expect(wrong).toBe(0);
          }
        }
      }
    });
  });
});
