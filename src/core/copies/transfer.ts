// Turns a copy into records: on which streams, and through which memory.
//
//   One record, if the given stream's device can do it alone: contiguous bytes between memory of its backend and page-locked
//   memory of any device, or elements of its own memory with any strides.
//   Several steps otherwise: strided elements are first gathered into a contiguous temporary on the source device, or finally scattered
//   from one on the destination device. Copies between backends go through page-locked memory, in pieces.
// Thread: owner.
import { performance } from '../base/timers.js';
import { tellStaging } from '../base/trace.js';
import type { DeviceCore } from '../device/device-core.js';
import type { StreamContext } from '../device/stream-context.js';
import { type FailingPart, hasFailed } from '../timeline/failures.js';
import type { StreamRecording, Timeline } from '../timeline/timeline.js';
import { HostCompletion } from '../waits/host-completion.js';
import type { CopyPlan, End } from './copy-plan.js';
import { refuseJoining } from '../base/apart.js';
import { probePeer } from './peer-route-probe.js';
import { type Elements, isOnDevice, type Region } from './memory-region.js';
import { MultiStepCopy, submitArrange, submitMove } from './multi-step-copy.js';
import { recordsThroughHost, submitThroughHost } from './host-staging.js';
import { detached, HostStage, upload } from './upload.js';

/** A submitted copy. */
export interface Moved {
  readonly ticket: number;
  /** Its records, if there are several. */
  readonly parts: readonly FailingPart[] | undefined;
  /** Set if the destination is an ordinary array. */
  readonly hostCompletion?: HostCompletion | undefined;
}

/** The most records of a copy in several steps on one stream: the steps, a wait before each, and the frees. */
const STEP_RECORDS = 16;

/** `stream.copy`. */
export function submitTransfer(site: StreamContext, plan: CopyPlan): Moved {
  const { core, timeline } = site;
  const { dst, src, label, isTransfer } = plan;
  if (plan.byteLength === 0) {
    const ticket = core.submit(timeline, core.encoder.nop(timeline.slot));
    if (isTransfer && src.bytes !== undefined) detached(src.bytes.buffer as ArrayBuffer);
    return { ticket, parts: undefined };
  }
  if (timeline.recording !== undefined) refuseOrdinary(timeline.recording, timeline, dst, src);
  if (src.region === undefined) {
    // planCopy ensures that a device can access one end.
    const to = dst.region as Region;
    return upload(to.storage.core, src.bytes, to, isTransfer, (from) => submitCopy(site, to, from, plan, label));
  }
  const from = src.region;
  if (dst.region !== undefined) return submitCopy(site, dst.region, from, plan, label);
  const stage = HostStage.locked(from.storage.core, plan.byteLength);
  const moved = stage.useLonger(() => submitCopy(site, stage.region, from, plan, label));
  const hostCompletion = copyToHost(site, [{ stage, into: dst.bytes }], moved);
  return { ticket: moved.ticket, parts: moved.parts, hostCompletion };
}

/** Throws if a graph would have to copy from or to an ordinary array. */
export function refuseOrdinary(recording: StreamRecording, timeline: Timeline, dst: End, src: End): void {
  if (src.region !== undefined && dst.region !== undefined) return;
  const [end, reason] = src.region === undefined ? (['from', 'unsupported-node'] as const) : (['to', 'readback'] as const);
  throw recording.refusal(timeline, reason, `a graph cannot copy ${end} an ordinary typed array; copy ${end} a pinned one`);
}

/** Copies the bytes to ordinary arrays after the operation, whether or not a promise waits for it. */
export function copyToHost(
  { core, timeline }: StreamContext,
  targets: readonly { readonly stage: HostStage; readonly into: Uint8Array }[],
  { ticket, parts }: Moved,
): HostCompletion {
  const hostCompletion = new HostCompletion(ticket);
  const page = timeline.failurePage(ticket);
  core.hostCompletions.expect(timeline, hostCompletion);
  let left = targets.length;
  let first: Error | undefined;
  let reachedMs = 0;
  const finishOne = (stage: HostStage, error?: Error): void => {
    if (reachedMs > 0) tellStaging('to', stage.bytes.byteLength, core.name, reachedMs);
    stage.giveBack();
    first ??= error;
    if (--left === 0) hostCompletion.settle(first);
  };
  const finish = (): void => {
    for (const { stage } of targets) finishOne(stage);
  };
  core.progress.add(timeline, {
    ticket,
    keepsAlive: false,
    // The operation failed: there is nothing to copy to the host. Waits for the ticket report the failure.
    settle: () => {
      if (page?.at(ticket) !== undefined || parts?.some(hasFailed) === true) finish();
      else {
        reachedMs = performance.now();
        for (const { stage, into } of targets) core.hostCopies.copyToHost(stage.bytes, into, (error) => finishOne(stage, error));
      }
    },
    lose: finish,
  });
  return hostCompletion;
}

/** Copies elements between two regions. The copy behaves like one operation of the given stream. */
export function submitCopy(site: StreamContext, dst: Region, src: Region, elements: Elements, label: string | undefined): Moved {
  const [to, from] = [dst.storage.core, src.storage.core];
  refuseJoining(to, from, 'A copy between devices');
  refuseJoining(site.core, to, 'A copy in a stream of another device');
  if (isOnDevice(dst) && isOnDevice(src)) probePeer(to, from);
  const isFlat = dst.strides === undefined && src.strides === undefined;
  const isInside = to === from && isOnDevice(dst) && isOnDevice(src);
  if (isFlat && reaches(site.core, dst) && reaches(site.core, src)) {
    return { ticket: submitMove(site, dst, src, elements.byteLength, label), parts: undefined };
  }
  if (!isFlat && isInside && to === site.core) return { ticket: submitArrange(site, dst, src, elements, label), parts: undefined };
  const { recording } = site.timeline;
  if (recording !== undefined && !(reaches(site.core, dst) && reaches(site.core, src))) {
    const backends = [dst, src].map(({ storage: { core } }) => `${core.name} (${core.channel.backend})`);
    const what = `a graph runs on devices of one backend (${site.core.channel.backend}), and the copy is to device ${backends[0]} from device ${backends[1]}`;
    throw recording.refusal(site.timeline, 'unsupported-node', what);
  }
  const steps = new MultiStepCopy(site, label);
  steps.check(dst, src);
  try {
    if (!isFlat && isInside) {
      const inside = steps.on(to);
      steps.reserve(STEP_RECORDS);
      steps.arrange(inside, dst, src, elements);
    } else {
      submitInSteps(steps, dst, src, elements);
    }
    const ticket = steps.end();
    return { ticket, parts: steps.parts };
  } catch (error) {
    steps.abandon();
    throw error;
  }
}

/** Whether a record of this device's streams can copy the region's bytes. */
function reaches({ channel }: DeviceCore, region: Region): boolean {
  return !isOnDevice(region) || region.storage.core.channel.backend === channel.backend;
}

/** Submits the steps: gathers, copies bytes and scatters, as needed. */
function submitInSteps(steps: MultiStepCopy, dst: Region, src: Region, elements: Elements): void {
  const [to, from] = [dst.storage.core, src.storage.core];
  const { byteLength } = elements;
  const isForeign = isOnDevice(dst) && isOnDevice(src) && to.channel.backend !== from.channel.backend;
  // Take all streams and check their room before anything is submitted.
  const gathering = src.strides === undefined ? undefined : steps.on(from);
  const scattering = dst.strides === undefined ? undefined : steps.on(to);
  const [leaving, arriving] = isForeign ? [steps.near(from), steps.near(to)] : [undefined, steps.near(isOnDevice(dst) ? to : from)];
  steps.reserve(STEP_RECORDS + (isForeign ? recordsThroughHost(byteLength) : 0));

  let [near, far] = [src, dst];
  if (gathering !== undefined) {
    near = steps.temporary(gathering, byteLength);
    steps.arrange(gathering, near, src, elements);
  }
  if (scattering !== undefined) far = steps.temporary(scattering, byteLength);
  if (leaving === undefined) steps.move(arriving, far, near, byteLength);
  else submitThroughHost(steps, leaving, arriving, far, near, byteLength);
  if (scattering !== undefined) steps.arrange(scattering, dst, far, elements);
}
