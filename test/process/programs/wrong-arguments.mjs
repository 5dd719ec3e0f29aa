// Calls every function that the addon exports with wrong arguments: each call throws, or answers. Prints how many.
import { createRequire } from 'node:module';

const binding = createRequire(import.meta.url)(process.argv[2]);
const { MAX_STREAMS, TimelineSlot, HandleKind, IPC_HANDLE_BYTES, Status } = await import(process.argv[3]);
const { Encoder } = await import(process.argv[4]);

const growable = (bytes, most) => new SharedArrayBuffer(bytes, { maxByteLength: most });
const PAGE = 4096;
const timelineBytes = MAX_STREAMS * TimelineSlot.BYTE_SIZE;
const timeline = () => new Uint8Array(growable(timelineBytes, timelineBytes), 0, timelineBytes);
const arena = () => new Uint8Array(growable(PAGE, 2 ** 20), 0, PAGE);

/** What is passed in each place, beside what is right there. */
const WRONG = [
  undefined,
  null,
  true,
  NaN,
  Infinity,
  -1,
  0,
  0.5,
  1,
  7,
  4000,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 53,
  1e300,
  5n,
  '',
  'cpu',
  'x'.repeat(100),
  Symbol('x'),
  {},
  [],
  [1, 'x'],
  () => 1,
  new Uint8Array(0),
  new Uint8Array(PAGE),
  new Float64Array(8),
  new ArrayBuffer(8),
  arena(),
  timeline(),
  new Proxy(
    {},
    {
      get() {
        throw new Error('a getter');
      },
    },
  ),
];

const encoder = new Encoder();
binding.openPort(encoder.block, () => {});
const open = () => binding.openDevice('cpu', 0, timeline(), arena(), 2 ** 20, 1000, false, 0, 0, 2 ** 32, 0, 0, 0, 0);
const channel = open();
binding.attach(channel, false);
const stream = binding.reserveStream(channel);
const handle = (kind) => binding.reserveHandles(channel, kind, 1) + (1 << 22);
function submit(bytes) {
  encoder.call(channel, bytes);
  binding.submit();
  return encoder.answer;
}
submit(encoder.streamCreate(stream, 0));
// A record of no device, one beyond the block, and one that is cut short; the last is what `submit` gets below.
for (const [id, bytes] of [
  [channel + 1000, 16],
  [channel, 2 ** 32 - 1],
  [channel, 8],
]) {
  encoder.call(id, bytes);
  binding.submit();
  if (encoder.answer >= 0) throw new Error(`submit took ${bytes} bytes for channel ${id}.`);
}

/** Right arguments, as far as a call of them does no harm. */
const RIGHT = {
  openDevice: ['cpu', 0, timeline(), arena(), 2 ** 20, 1000, false, 0, 0, 2 ** 32, 0, 0, 0, 0],
  deviceInfo: [channel],
  // Of a channel that is not there.
  closeDevice: [channel + 1000],
  destroyDevice: [channel + 1000],
  ownerLeft: [channel + 1000, 1],
  installKernel: [
    channel,
    handle(HandleKind.KERNEL),
    { image: new Uint8Array(3), entry: 'x', isBounded: false, isChecked: false, module: 77 },
  ],
  // The CPU device has no library.
  installPlan: [channel, handle(HandleKind.KERNEL), new Float64Array(16)],
  failKernel: [channel, handle(HandleKind.KERNEL), Status.COMPILE],
  registerHost: [channel, handle(HandleKind.HOST), new Uint8Array(64), false],
  unregisterHost: [channel, handle(HandleKind.HOST), true],
  countShared: [new SharedArrayBuffer(64), 64],
  mapHost: [new Uint8Array(growable(PAGE, PAGE), 0, PAGE), arena()],
  unmapHost: [new Uint8Array(growable(PAGE, PAGE), 0, PAGE)],
  copyHost: [new Uint8Array(8), new Uint8Array(8)],
  copyHostApart: [new Uint8Array(8), new Uint8Array(8)],
  adviseHugePages: [new Uint8Array(8)],
  lockProbe: [4096],
  compileNvrtc: ['text', 'name', ['--x'], ['a.h'], ['text'], ['k']],
  linkDevice: [0, new Uint8Array(8), 'library', 'sm_90'],
  openPort: [encoder.block, () => {}],
  refPort: [false],
  attach: [channel, false],
  detach: [channel + 1000],
  reserveHandles: [channel, HandleKind.MEMORY, 1],
  defineGraph: [channel, handle(HandleKind.GRAPH), new Uint8Array(3)],
  reserveStream: [channel],
  lastTicket: [channel, stream],
  submit: [],
  arm: [channel, stream, 1],
  failures: [channel, stream, 0],
  reported: [channel, stream, 0],
  reportedOf: [channel, 1 << 22, 0, 4],
  loss: [channel],
  stats: [channel],
  busyStreams: [channel],
  pendingPoints: [channel],
  releaseHold: [channel, stream, 1],
  failExternal: [channel, stream, 1],
  readyExternal: [channel, stream],
  enterContext: [channel],
  leaveContext: [channel],
  // The CPU device captures no calls.
  captureCalls: [channel, handle(HandleKind.KERNEL), () => true],
  failCaptured: [channel, handle(HandleKind.KERNEL)],
  dropCaptured: [channel, handle(HandleKind.KERNEL)],
  adjustExternalMemory: [0, true],
  streamHandle: [channel, stream],
  memoryAddress: [channel, 1 << 22],
  isPeerGranted: [channel, 0, true],
  holdChannel: [channel, false],
  startRecording: [channel, 100, 0],
  stopRecording: [channel],
  takeTimes: [channel, new Uint8Array(64)],
  alignClocks: [channel],
  loadModule: [channel, 1, new Uint8Array(3)],
  bindVariable: [channel, handle(HandleKind.MEMORY), 77, 'scale', 4],
  failVariable: [channel, handle(HandleKind.MEMORY), 4, 1],
  reserveFailure: [],
  poolStats: [channel],
  setReleaseThreshold: [channel, 0],
  releaseThreshold: [channel],
  trimPool: [channel, 0],
  resetHighWater: [channel],
  peerState: [channel, 0, 0],
  setPeer: [channel, 0, 0, true],
  probePeer: [channel, channel],
  divide: [channel, new Float64Array([1])],
  endPartition: [channel, 1],
  elapsed: [channel, 1 << 22, 1 << 22],
  exportEvent: [channel, 1 << 22],
  openEvent: [channel, 1 << 22, new Uint8Array(IPC_HANDLE_BYTES)],
  exportMemory: [channel, 1 << 22],
  openMemory: [channel, 1 << 22, new Uint8Array(IPC_HANDLE_BYTES), 4],
  // A group and a folder that are not there: what is kept is ended with the environment.
  keepGroup: [2 ** 31 - 1, false],
  // This thread starts no children.
  keepChildren: [],
  keepFolder: ['/nonexistent/millrace', false],
  openCompilerSlots: [() => {}],
  takeCompilerSlot: [4],
  grantedCompilerSlots: [],
  releaseCompilerSlot: [],
  protocolHash: [],
  enumerate: [],
  nvrtc: [],
  libraries: [],
  hasCufft: [],
  openCommunicator: [Float64Array.of(62, 63), Float64Array.of(0, 1), 2, new Uint8Array()],
  communicatorId: [],
  communicatorState: [1],
  abortCommunicator: [1, 1],
  closeCommunicator: [1],
  telemetry: [channel],
  allTelemetry: [],
  nvtxState: [],
  nvtxLabel: ['name'],
  nvtxStart: ['name'],
  nvtxEnd: [1],
  closePort: [],
  // The others are asked for a device that is none in another process.
  remoteOpen: [timeline(), arena(), 2 ** 20, 1000],
  endWithParent: [process.ppid],
  remoteWatch: [channel, 1, 0],
  remoteEnd: [channel],
  remoteTake: [channel, PAGE],
  remoteRelease: [channel, 0, PAGE],
  remoteWrite: [channel, 0, new Uint8Array(8)],
  remoteRead: [channel, 0, new Uint8Array(8)],
  remoteMap: [channel, 0, new Uint8Array(growable(PAGE, PAGE), 0, PAGE)],
  remoteSubmit: [],
  remoteReserveHandles: [channel, HandleKind.MEMORY, 1],
  remoteReserveFailure: [channel],
  remoteDefineGraph: [channel, 1 << 22, new Uint8Array(3)],
  remoteReserveStream: [channel],
  remoteLastTicket: [channel, stream],
  remotePendingPoints: [channel],
  remoteArm: [channel, stream, 1],
  remoteFailures: [channel, stream, 0, 1],
  remoteReported: [channel, stream, 0],
  remoteReportedOf: [channel, 1 << 22, 0, 4],
  remoteReleaseHold: [channel, stream, 1],
  remoteFailExternal: [channel, stream, 1],
  remoteLoss: [channel],
  remoteEnded: [channel],
  remoteHung: [channel],
  remoteStats: [channel],
  remoteBusyStreams: [channel],
  remoteHold: [channel, false],
  remoteStartRecording: [channel, 100, 0],
  remoteStopRecording: [channel],
  remoteTakeTimes: [channel, new Uint8Array(64)],
};
const names = Object.keys(binding);
const unknown = names.filter((name) => RIGHT[name] === undefined);
if (unknown.length > 0) throw new Error(`No right arguments are known of ${unknown.join()}.`);

let calls = 0;
let thrown = 0;
const promises = [];
/** What was opened by the way is closed again. */
const opened = [];
const ENDING = new Set(['closeDevice', 'destroyDevice', 'detach']);
/** Locking gigabytes takes seconds. */
const LARGE = [2 ** 31, 2 ** 32 - 1, 2 ** 32];
function call(name, args) {
  if (name === 'lockProbe' && LARGE.includes(args[0])) return;
  // It takes the descriptor over, which may be that of the output.
  if (name === 'openDevice' && Number.isInteger(args[10]) && args[10] > 0) return;
  // This one goes on.
  if (ENDING.has(name) && args[0] === channel) return;
  calls++;
  try {
    const answer = binding[name](...args);
    if (answer instanceof Promise) promises.push(answer.catch(() => undefined));
    if (name === 'openDevice' && typeof answer === 'number') opened.push(answer);
    if (name === 'remoteOpen') binding.remoteEnd(answer.channel);
    // A held channel would keep what follows.
    if (name === 'holdChannel') binding.holdChannel(channel, false);
  } catch {
    thrown++;
  }
}

for (const name of names.filter((one) => one !== 'closePort')) {
  const right = RIGHT[name];
  call(name, right);
  call(name, []);
  for (const wrong of WRONG) call(name, Array(6).fill(wrong));
  for (let place = 0; place < right.length; place++) {
    call(name, right.slice(0, place));
    for (const wrong of WRONG) {
      call(name, right.toSpliced(place, 1, wrong));
    }
  }
}

// A record asks for a stream of a priority that the device has not.
for (const priority of [100, -100]) {
  const other = binding.reserveStream(channel);
  const ticket = submit(encoder.streamCreate(other, priority));
  while (!binding.arm(channel, other, ticket)) await new Promise(setImmediate);
  console.log(
    binding
      .failures(channel, other, 0, 1000)
      .records.map(({ status }) => status === Status.ARGUMENT)
      .join(' '),
  );
}

await Promise.all(promises);
// The device still works.
const ticket = submit(encoder.nop(stream));
while (!binding.arm(channel, stream, ticket)) await new Promise(setImmediate);
await Promise.all([channel, ...opened].map((id) => binding.closeDevice(id)));
binding.closePort();
console.log(`${names.length > 40} ${calls > 2000} ${thrown > 1000}`);
