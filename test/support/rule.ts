// One test of one numbered rule. Knows the listed skips: a rule listed for a target is still run, and passing is a
// failure, so that the list cannot outlive its reasons.
import { afterAll, beforeAll, test, type TestContext } from 'vitest';
import type { Device, OpenOptions } from 'millrace';
import { SKIPS } from '../conformance/skips.js';
import { SLOWNESS } from './slowness.js';
import type { Target } from './target.js';

export type RuleNumber = `S${number}`;
export interface RuleOptions {
  /** A capability that the rule needs: false, or why it is absent. */
  readonly unless?: string | false;
  readonly timeoutMs?: number;
}
export type Rule = (number: RuleNumber, title: string, body: (context: TestContext) => Promise<void> | void, options?: RuleOptions) => void;

const DEFAULT_TIMEOUT_MS = 60_000;

export function rulesOf(target: Target): Rule {
  return (number, title, body, options = {}) => {
    const name = `${number} ${title}`;
    const timeout = SLOWNESS * (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const targets = target.name.split(', ');
    const listed = SKIPS.find((skip) => targets.includes(skip.target) && skip.rule === number && (skip.title ?? title) === title);
    test(name, { timeout }, async (context) => {
      if (options.unless) context.skip(options.unless);
      if (listed === undefined) return body(context);
      if (listed.isNotRun === true) context.skip(listed.reason);
      let isBroken = false;
      try {
        await body(context);
      } catch {
        isBroken = true;
      }
      if (isBroken) context.skip(listed.reason);
      throw new Error(`${number} passes on ${target.name}: remove it from skips.ts.`);
    });
  };
}

/** One device for the tests of a chapter, opened before the first and closed after the last. */
export function chapterDevice(target: Target, options?: OpenOptions): { readonly device: Device } {
  return openedFor(() => target.open(options));
}

/** The same, and another device, for what joins two. */
export function chapterDevices(target: Target): { readonly device: Device; readonly other: Device } {
  const { openOther } = target;
  if (openOther === undefined) throw new Error(`${target.name} names no second device.`);
  const one = chapterDevice(target);
  const second = openedFor(openOther);
  return {
    get device(): Device {
      return one.device;
    },
    get other(): Device {
      return second.device;
    },
  };
}

function openedFor(open: () => Promise<Device>): { readonly device: Device } {
  let opened: Device | undefined;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(async () => {
    await opened?.close();
  });
  return {
    get device(): Device {
      if (opened === undefined) throw new Error('The device of this chapter did not open.');
      return opened;
    },
  };
}

/** A device of its own for tests that close it, or need options. */
export async function withDevice<R>(target: Target, options: OpenOptions, body: (device: Device) => Promise<R>): Promise<R> {
  const device = await target.open(options);
  try {
    return await body(device);
  } finally {
    await device.close();
  }
}
