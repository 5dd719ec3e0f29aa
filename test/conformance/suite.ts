// The conformance suite: every chapter of docs/semantics.md as tests of one target. A backend adopts it by naming a
// way to open its device and what the device can do.
import { describe } from 'vitest';
import type { Target } from '../support/target.js';
import { badArguments } from './arguments.js';
import { arrays } from './arrays.js';
import { copies } from './copies.js';
import { events } from './events.js';
import { failures } from './failures.js';
import { launches } from './launches.js';
import { lifecycle } from './lifecycle.js';
import { limits } from './limits.js';
import { observation } from './observation.js';
import { randomPrograms } from './random-programs.js';
import { streams } from './streams.js';
import { twoDevices } from './two-devices.js';
import { typescriptKernels } from './typescript-kernels.js';
import { waiting } from './waiting.js';

const CHAPTERS: readonly ((target: Target) => void)[] = [
  streams,
  randomPrograms,
  events,
  arrays,
  copies,
  launches,
  typescriptKernels,
  waiting,
  badArguments,
  failures,
  limits,
  lifecycle,
  observation,
];

export function suite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of CHAPTERS) chapter(target);
    if (target.openOther !== undefined) twoDevices(target);
  });
}

/** Only the rules that join two devices. */
export function twoDeviceSuite(target: Target): void {
  describe(target.name, () => {
    twoDevices(target);
  });
}
