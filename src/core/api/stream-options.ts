// Options of streams.
import { badArgument, checkInteger, show } from '../base/arguments.js';
import { checkOptionNames } from '../base/option-names.js';
import type { Ordering } from '../device/stream-context.js';
import type { DeviceContext } from './device-context.js';
import { checkPartition, type Partition } from './partition.js';

/** Options of `createStream`, which throws ArgumentError for bad values. */
export interface StreamOptions {
  /** Smaller is more urgent; default 0. Clamped to 0 and -1, or with `fullRange` to the device's `priorityRange`. */
  readonly priority?: number;
  /** Default false. True clamps `priority` to the device's `priorityRange` instead of to -1 and 0. */
  readonly fullRange?: boolean;
  /** The stream's name in messages and in `device.inspect()`; default 'stream-1' and so on. */
  readonly label?: string;
  /**
   * What a call does when another stream has used the same bytes. 'tracked': the stream waits for that use, on the device. 'checked': the
   * call throws a StreamHazardError unless an event or wait orders the two uses. 'explicit': neither. Default: the device's `ordering`.
   */
  readonly ordering?: Ordering;
  /** The share of the device on which the stream's kernels run, of `device.partition`. Default: the whole device. */
  readonly partition?: Partition;
  /** True adds `deviceMs` to the `done` of launches, copies and fills, for two device timestamps each. Default false. */
  readonly timing?: boolean;
}

/**
 * The options with their defaults for a stream of the context; the priority is clamped. Throws ArgumentError for a bad value, and StateError
 * for a closed partition.
 */
export function checkStreamOptions(
  opts: StreamOptions,
  context: DeviceContext,
): Required<Pick<StreamOptions, 'priority' | 'ordering' | 'timing'>> & { readonly partition: Partition | undefined } {
  checkOptionNames(opts, ['priority', 'fullRange', 'label', 'ordering', 'partition', 'timing']);
  const { priority = 0, fullRange = false, ordering, partition, timing = false } = opts;
  const { owner, checksExplicit } = context;
  const clamped = clampPriority(checkInteger('priority', priority, Number.MIN_SAFE_INTEGER), owner.info.priorityRange, fullRange);
  if (ordering !== undefined) checkOrdering(ordering);
  if (partition !== undefined) checkPartition(partition, context);
  const chosen = ordering ?? owner.ordering;
  return { priority: clamped, ordering: checksExplicit && chosen === 'explicit' ? 'checked' : chosen, timing, partition };
}

/** Without `fullRange`, only 0 and -1: every device has these two priorities, or maps them to one. */
function clampPriority(priority: number, [least, greatest]: readonly [number, number], isFullRange: boolean): number {
  const [low, high] = isFullRange ? [greatest, least] : [Math.max(greatest, -1), 0];
  // Turns -0 into 0.
  return Math.max(low, Math.min(high, priority)) || 0;
}

/** Throws ArgumentError for a value that is no ordering. */
export function checkOrdering(ordering: unknown): void {
  if (ordering === 'tracked' || ordering === 'checked' || ordering === 'explicit') return;
  throw badArgument('ordering', ordering, `The ordering (${show(ordering)}) is none of 'tracked', 'checked', 'explicit'.`);
}
