// Which part of src/ may import which, as data for architecture.test.ts. Change the tables knowingly.
/** Folder of src/, or a file right in it, and what it may import: folders, or single files of a folder. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  native: ['protocol', 'core/channel/control.ts', 'core/base/errors.ts'],
  core: ['protocol'],
  compiler: [
    'core/kernels/definitions.ts',
    'core/kernels/kernel.ts',
    'core/kernels/module.ts',
    'core/kernels/params.ts',
    'core/kernels/value-params.ts',
    'core/elements',
    'core/channel/build-spec.ts',
    'core/base',
    'protocol',
    'cuda-cpp/read',
    'cuda-cpp/select',
  ],
  'cuda-cpp': ['core/elements', 'core/channel/build-spec.ts', 'core/base/errors.ts', 'toolchain/base'],
  toolchain: [
    'core/channel/build-spec.ts',
    'core/base/arguments.ts',
    'core/base/errors.ts',
    'core/base/nearest-name.ts',
    'core/base/timers.ts',
    'core/kernels/definitions.ts',
    'core/kernels/kernel.ts',
    'protocol',
    'cuda-cpp',
    'compiler/codegen',
  ],
  workers: [
    'core/channel',
    'core/base/arguments.ts',
    'core/base/driver-errors.ts',
    'core/base/errors.ts',
    'core/base/option-names.ts',
    'core/base/device-token.ts',
    'core/base/timers.ts',
    'core/base/trace.ts',
    'core/waits/abort-listeners.ts',
    'native',
    'protocol',
    'toolchain',
  ],
  reactive: ['core/base', 'core/elements', 'core/kernels', 'core/waits', 'core/operations', 'core/api', 'workers/cpu-pool.ts'],
  ops: ['core', 'compiler', 'protocol'],
  collectives: ['core', 'ops', 'protocol'],
  queue: ['core/base', 'core/waits', 'reactive'],
  recording: ['core', 'protocol'],
  testing: ['core', 'protocol', 'reactive/index.ts', 'recording', 'open-device.ts'],
  'open-options.ts': ['core', 'protocol'],
  'open-device.ts': ['core', 'native', 'protocol', 'workers', 'compiler/definitions', 'open-options.ts'],
  'cuda-module.ts': ['core', 'compiler'],
  'diagnostics.ts': ['core/base/errors.ts', 'native/addon-place.ts', 'workers/device-worker-handle.ts', 'workers/machine-report.ts'],
  // The commands of `npx millrace`.
  cli: [
    'index.ts',
    'native',
    'core/api/telemetry.ts',
    'recording/live-program.ts',
    'recording/served-programs.ts',
    'core/base/errors.ts',
    'core/base/nearest-name.ts',
    'core/kernels/definitions.ts',
    'toolchain',
    'workers',
  ],
  'index.ts': [
    'core',
    'compiler',
    'cuda-module.ts',
    'diagnostics.ts',
    'reactive',
    'workers/cpu-pool.ts',
    'workers/graph-layout.ts',
    'open-device.ts',
    'open-options.ts',
  ],
};

/** Subfolders, lowest layer first, and which lower ones each imports, types included. docs/architecture.md says what is in them. */
export const SUBFOLDERS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: {
    base: [],
    elements: ['base'],
    channel: ['base'],
    timeline: ['base', 'channel'],
    ordering: ['base', 'timeline'],
    waits: ['base', 'channel', 'timeline'],
    kernels: ['base', 'elements', 'channel', 'timeline'],
    device: ['base', 'channel', 'timeline', 'ordering', 'waits', 'kernels'],
    memory: ['base', 'elements', 'channel', 'timeline', 'ordering', 'kernels', 'device'],
    graphs: ['base', 'elements', 'timeline', 'ordering', 'kernels', 'device', 'memory'],
    copies: ['base', 'elements', 'timeline', 'ordering', 'waits', 'device', 'memory'],
    events: ['base', 'timeline', 'waits', 'device'],
    operations: ['base', 'timeline', 'waits', 'device', 'events'],
    api: ['base', 'elements', 'timeline', 'ordering', 'waits', 'kernels', 'device', 'memory', 'graphs', 'copies', 'events', 'operations'],
  },
  compiler: {
    diagnostics: [],
    ir: [],
    language: [],
    source: ['diagnostics'],
    analysis: ['diagnostics', 'ir'],
    lowering: ['diagnostics', 'ir', 'language', 'source', 'analysis'],
    emission: ['ir', 'analysis'],
    simd: ['ir', 'analysis', 'emission'],
    codegen: ['diagnostics', 'ir', 'emission', 'simd'],
    definitions: ['diagnostics', 'ir', 'language', 'source', 'analysis', 'lowering', 'emission', 'codegen'],
  },
  'cuda-cpp': {
    read: [],
    select: ['read'],
    lower: ['read'],
  },
  toolchain: {
    system: [],
    base: [],
    compilers: ['system', 'base'],
    images: ['system', 'base', 'compilers'],
  },
};

export const ORDERING: string = 'core/ordering';
/** Its files that others import, and which others: kinds of memory, and the interfaces of streams and devices, have a door each. */
export const DOORS_OF_ORDERING: Readonly<Record<string, RegExp>> = {
  'access-tracker.ts': /^/,
  'tracked-memory.ts': /^core\/(memory\/storage\.ts|graphs\/)/,
  'ordered-stream.ts': /^core\/(device|graphs)\//,
  'nodes-of-launch.ts': /^core\/graphs\//,
};

/** The circle of values. */
export const LOWERED_EXPRESSIONS: readonly string[] = [
  'compiler/lowering/atomics.ts',
  'compiler/lowering/builtin-calls.ts',
  'compiler/lowering/calls.ts',
  'compiler/lowering/expressions.ts',
  'compiler/lowering/memory.ts',
  'compiler/lowering/names.ts',
  'compiler/lowering/random.ts',
  'compiler/lowering/vector-functions.ts',
  'compiler/lowering/vectors.ts',
];

/**
 * The circles of imports, types included, which are all there are. docs/architecture.md explains the first of core. In its second, a kernel may
 * belong to a module; in its third, a stream's tickets, log and failures name each other. In the compiler, an expression of a kernel has calls,
 * names, memory and vectors, whose parts are expressions (the only circle of values); so it is in the SIMD form.
 */
export const CIRCLES: readonly (readonly string[])[] = [
  LOWERED_EXPRESSIONS,
  ['compiler/simd/expressions.ts', 'compiler/simd/memory.ts'],
  [
    'core/api/array-factory.ts',
    'core/api/array.ts',
    'core/api/capture.ts',
    'core/api/condition.ts',
    'core/api/copy-recorder.ts',
    'core/api/cuda-module.ts',
    'core/api/current-stream.ts',
    'core/api/device-context.ts',
    'core/api/device.ts',
    'core/api/event.ts',
    'core/api/graph.ts',
    'core/api/launch-args.ts',
    'core/api/made-arrays.ts',
    'core/api/open-devices.ts',
    'core/api/peers.ts',
    'core/api/recorder.ts',
    'core/api/scope.ts',
    'core/api/stream.ts',
  ],
  ['core/kernels/kernel.ts', 'core/kernels/module.ts'],
  ['core/timeline/failures.ts', 'core/timeline/operation-log.ts', 'core/timeline/timeline.ts', 'core/timeline/unhandled-failures.ts'],
  ['testing/channel.ts', 'testing/device-group.ts'],
];
