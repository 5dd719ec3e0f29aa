// Pools of CPU threads whose threads end.
import { describe, expect, test } from 'vitest';
import { runProgram } from './child.js';

describe('a pool of CPU threads', () => {
  // The heap is small so that the tasks that take memory end soon.
  test('runs each task once, whatever ends the threads, and keeps the process until all have settled', async () => {
    const ending = await runProgram('pool-bursts', ['7', '5'], { env: { NODE_OPTIONS: '--max-old-space-size=40' } });
    expect(ending.stdout).toBe('120 of 120 settled, 13 kinds, exit code 0\n');
  });
});
