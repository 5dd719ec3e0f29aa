// The conformance suite: every chapter of docs/semantics.md as tests of one target. A target says how to open its device and
// what the device supports.
import { describe } from 'vitest';
import { IS_LONG } from '../support/long.js';
import type { Target } from '../support/target.js';
import { badArguments } from './arguments.js';
import { arrays } from './arrays.js';
import { batchedRequests } from './batches.js';
import { betweenDevices } from './between-devices.js';
import { blockKernels } from './block-kernels.js';
import { captureErrors } from './capture-errors.js';
import { capturedStreams } from './captured-streams.js';
import { captures } from './captures.js';
import { checkedLoops } from './checked-loops.js';
import { conditionErrors } from './condition-errors.js';
import { conditionNodes } from './condition-nodes.js';
import { conditions } from './conditions.js';
import { contexts } from './contexts.js';
import { cooperative } from './cooperative.js';
import { copies } from './copies.js';
import { copyBatches } from './copy-batches.js';
import { cpuTaskFailures } from './cpu-tasks.js';
import { cudaAssertions } from './cuda-assertions.js';
import { cudaCode } from './cuda-code.js';
import { cudaLibraries } from './cuda-libraries.js';
import { cudaTexts } from './cuda-text.js';
import { currentStream, currentStreamsOfTwo } from './current-stream.js';
import { derivedOfThreads, derivedOfTwo } from './derived-between.js';
import { derivedFailures } from './derived-failures.js';
import { derivedGraphs } from './derived-graphs.js';
import { derivedPipelines } from './derived-pipelines.js';
import { derivedWays } from './derived-ways.js';
import { deviceLaunches } from './device-launches.js';
import { events } from './events.js';
import { failures } from './failures.js';
import { failuresOfTwo } from './failures-of-two.js';
import { graphDrawings } from './graph-drawings.js';
import { graphEnds } from './graph-ends.js';
import { graphEvents } from './graph-events.js';
import { graphFailures } from './graph-failures.js';
import { graphHazards } from './graph-hazards.js';
import { graphHostFunctions } from './graph-host-functions.js';
import { graphMemory } from './graph-memory.js';
import { graphMessages } from './graph-messages.js';
import { graphNodes } from './graph-nodes.js';
import { graphs } from './graphs.js';
import { graphTransfers } from './graph-transfers.js';
import { graphUploads } from './graph-uploads.js';
import { graphUpdates } from './graph-updates.js';
import { graphCopiesOfTwo, graphCopiesOfTwoBackends } from './graph-copies-of-two.js';
import { graphsOfTwo, graphsOfTwoBackends } from './graphs-of-two.js';
import { graphValues } from './graph-values.js';
import { hostFunctions } from './host-functions.js';
import { hostLimits } from './host-limits.js';
import { integers } from './integers.js';
import { javascriptNumbers } from './javascript-numbers.js';
import { kernelFaults } from './kernel-faults.js';
import { kernelLimits } from './kernel-limits.js';
import { launchArguments } from './launch-arguments.js';
import { launches } from './launches.js';
import { lifecycle } from './lifecycle.js';
import { limits } from './limits.js';
import { memoryLimits } from './memory-limits.js';
import { guardedMemory } from './guarded-memory.js';
import { halfNumbers } from './half-numbers.js';
import { mathFunctions } from './math-functions.js';
import { moduleVariables } from './module-variables.js';
import { modules, modulesOfTwo } from './modules.js';
import { observation } from './observation.js';
import { watching } from './watching.js';
import { orderByData, orderByDataOfTwo } from './order-by-data.js';
import { overlapped } from './overlap.js';
import { ownStreams } from './own-streams.js';
import { pipelineEnds } from './pipeline-ends.js';
import { pipelineErrors } from './pipeline-errors.js';
import { pipelineInputs } from './pipeline-inputs.js';
import { pipelines } from './pipelines.js';
import { pipelinesOfTwo } from './pipelines-of-two.js';
import { randomConditions } from './random-conditions.js';
import { randomFailures, randomFailuresOfTwo } from './random-failures.js';
import { randomGraphs } from './random-graphs.js';
import { randomPrograms, randomProgramsOfTwo } from './random-programs.js';
import { publishedIdioms } from './published-idioms.js';
import { pinnedBuffers } from './pinned-buffers.js';
import { pickedKernels } from './picked-kernels.js';
import { platform } from './platform.js';
import { randomKernels } from './random-kernels.js';
import { laneMemory } from './lane-memory.js';
import { stageValues } from './stage-values.js';
import { schedules } from './schedules.js';
import { sharedMemoryRaces } from './shared-memory-races.js';
import { sharing } from './sharing.js';
import { spinningThreads } from './spinning.js';
import { streams } from './streams.js';
import { webStreams } from './web-streams.js';
import { requests } from './requests.js';
import { valueErrors } from './value-errors.js';
import { valuesByValue } from './values-by-value.js';
import { virtualTime } from './virtual-time.js';
import { reopening } from './reopening.js';
import { stridedCopies } from './strided-copies.js';
import { textureArguments } from './texture-arguments.js';
import { textureOrder } from './texture-order.js';
import { textures } from './textures.js';
import { tileShuffles } from './tile-shuffles.js';
import { timing, timingOfTwo } from './timing.js';
import { transfers } from './transfers.js';
import { twoDevices } from './two-devices.js';
import { typescriptKernels } from './typescript-kernels.js';
import { typescriptValues } from './typescript-values.js';
import { views } from './views.js';
import { waiting } from './waiting.js';

const CHAPTERS: readonly ((target: Target) => void)[] = [
  streams,
  ownStreams,
  currentStream,
  orderByData,
  randomPrograms,
  events,
  timing,
  arrays,
  copies,
  copyBatches,
  views,
  stridedCopies,
  transfers,
  pinnedBuffers,
  platform,
  hostLimits,
  reopening,
  launches,
  launchArguments,
  kernelLimits,
  typescriptKernels,
  blockKernels,
  checkedLoops,
  typescriptValues,
  mathFunctions,
  pickedKernels,
  randomKernels,
  cudaTexts,
  cudaCode,
  halfNumbers,
  integers,
  javascriptNumbers,
  publishedIdioms,
  cudaLibraries,
  textures,
  textureArguments,
  textureOrder,
  valuesByValue,
  valueErrors,
  cudaAssertions,
  spinningThreads,
  cooperative,
  modules,
  moduleVariables,
  deviceLaunches,
  waiting,
  schedules,
  hostFunctions,
  badArguments,
  failures,
  derivedFailures,
  derivedWays,
  randomFailures,
  kernelFaults,
  guardedMemory,
  sharedMemoryRaces,
  tileShuffles,
  limits,
  memoryLimits,
  lifecycle,
  sharing,
  derivedOfThreads,
  observation,
  watching,
  overlapped,
  webStreams,
  contexts,
  pipelines,
  pipelineInputs,
  pipelineErrors,
  derivedPipelines,
  stageValues,
  laneMemory,
  pipelineEnds,
  cpuTaskFailures,
  requests,
  virtualTime,
  batchedRequests,
  captures,
  capturedStreams,
  captureErrors,
  graphs,
  graphMemory,
  graphValues,
  graphFailures,
  derivedGraphs,
  graphEvents,
  graphHazards,
  graphHostFunctions,
  graphNodes,
  graphUpdates,
  graphUploads,
  graphMessages,
  graphDrawings,
  graphTransfers,
  randomGraphs,
  conditions,
  conditionNodes,
  conditionErrors,
  randomConditions,
  graphEnds,
];

/** Chapters that a wrong order of operations may break. */
const OF_ORDER: readonly ((target: Target) => void)[] = [
  streams,
  currentStream,
  orderByData,
  randomPrograms,
  events,
  arrays,
  textureOrder,
  cooperative,
  moduleVariables,
  hostFunctions,
  deviceLaunches,
  captures,
  capturedStreams,
  graphs,
  graphMemory,
  graphValues,
  graphFailures,
  derivedFailures,
  randomFailures,
  derivedGraphs,
  graphEvents,
  graphHazards,
  graphHostFunctions,
  graphUpdates,
  graphTransfers,
  randomGraphs,
  conditions,
  conditionNodes,
  randomConditions,
];

/** Chapters that depend on the compiler. */
const OF_KERNELS: readonly ((target: Target) => void)[] = [
  launches,
  kernelLimits,
  typescriptKernels,
  blockKernels,
  checkedLoops,
  typescriptValues,
  pickedKernels,
  randomKernels,
  cudaTexts,
  cudaCode,
  halfNumbers,
  integers,
  javascriptNumbers,
  publishedIdioms,
  cudaLibraries,
  textures,
  textureArguments,
  valuesByValue,
  cudaAssertions,
  spinningThreads,
  guardedMemory,
  sharedMemoryRaces,
  modules,
  moduleVariables,
];

/** Chapters about what the code of kernels computes, whatever driver launches them. */
const OF_ARITHMETIC: readonly ((target: Target) => void)[] = [
  halfNumbers,
  integers,
  javascriptNumbers,
  randomKernels,
  cudaTexts,
  publishedIdioms,
  cudaLibraries,
];

/** Chapters about CUDA C++ as others write it: what the translator makes of a text, more than what the optimiser makes of it. */
const OF_TEXTS: readonly ((target: Target) => void)[] = [
  cudaTexts,
  cudaCode,
  halfNumbers,
  publishedIdioms,
  cudaLibraries,
  textures,
  textureArguments,
  sharedMemoryRaces,
];

/** The other chapters: about the runtime. */
const OF_RUNTIME = CHAPTERS.filter((chapter) => !OF_KERNELS.includes(chapter));

/** Chapters about two devices. */
const OF_TWO: readonly ((target: Target) => void)[] = [
  currentStreamsOfTwo,
  orderByDataOfTwo,
  randomProgramsOfTwo,
  timingOfTwo,
  twoDevices,
  betweenDevices,
  failuresOfTwo,
  derivedOfTwo,
  randomFailuresOfTwo,
  modulesOfTwo,
  pipelinesOfTwo,
  graphsOfTwo,
  graphCopiesOfTwo,
];

export function suite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of CHAPTERS) chapter(target);
    if (target.openOther !== undefined) for (const chapter of OF_TWO) chapter(target);
  });
}

/**
 * Chapters about two backends. Random programs are excluded, because their model assumes one stream per copy. Between backends a
 * stream of the other device does half of a copy, and a caller that waited for that device has observed that half.
 */
const OF_ONE_BACKEND: readonly unknown[] = [randomProgramsOfTwo, graphsOfTwo, graphCopiesOfTwo];
const OF_TWO_BACKENDS = [...OF_TWO.filter((chapter) => !OF_ONE_BACKEND.includes(chapter)), graphsOfTwoBackends, graphCopiesOfTwoBackends];

/** Runs only the rules about two devices, of two backends. */
export function twoBackendSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of OF_TWO_BACKENDS) chapter(target);
  });
}

/** Runs only the rules about two devices. */
export function twoDeviceSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of OF_TWO) chapter(target);
  });
}

/** Runs the chapters about order, for devices that choose their order at random. */
export function orderSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of [...OF_ORDER, randomProgramsOfTwo, randomFailuresOfTwo, twoDevices, graphsOfTwo]) chapter(target);
  });
}

/** Runs the chapters about the runtime, where another file runs those about kernels. */
export function runtimeSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of OF_RUNTIME) chapter(target);
  });
}

/** Runs the chapters about kernels, on a driver library that is not a GPU's: those about arithmetic would test only the compiler again. */
export function launchSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of OF_KERNELS) if (IS_LONG || !OF_ARITHMETIC.includes(chapter)) chapter(target);
  });
}

/** Runs the chapters about kernels, without those of `textSuite`. */
export function kernelSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of OF_KERNELS) if (!OF_TEXTS.includes(chapter)) chapter(target);
  });
}

/** Runs the chapters about CUDA C++ as others write it. */
export function textSuite(target: Target): void {
  describe(target.name, () => {
    for (const chapter of OF_TEXTS) chapter(target);
  });
}
