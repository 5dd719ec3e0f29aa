// A thread that looks at the machine for `diagnostics()` and ends: the driver and the compilers take long to answer.
import { existsSync, readFileSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism, constants, cpus, release, totalmem, userInfo } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { MillraceError, UnavailableError } from '../core/base/errors.js';
import { addonPlace, installHelp, platformName, platformPackage, VERSION } from '../native/addon-place.js';
import type { Binding } from '../native/binding.js';
import { loadBinding } from '../native/load.js';
import type { BackendReport, NativeDeviceInfo } from '../protocol/reports.js';
import { nearestVariable, OF_DEVELOPERS, VARIABLES } from '../toolchain/base/environment-variables.js';
import { targetOfProcessor } from '../toolchain/base/image-targets.js';
import { packageIdentity, processorFlags } from '../toolchain/base/package-and-cpu-identity.js';
import { faultOfNvcc, findCxx, findNvcc, majorOf, hostHelp, nvrtcHelp, type Toolchain } from '../toolchain/compilers/toolchain.js';
import { cacheContents } from '../toolchain/images/cache-contents.js';
import { existingPart, isNoExec } from '../toolchain/images/private-cache-folder.js';
import { PrebuiltImages } from '../toolchain/images/prebuilt-images.js';
import { remedyOf } from '../toolchain/system/environment-errors.js';
import { temporaryFolder } from '../toolchain/system/temporary-folder.js';
import { bytesText } from './byte-units.js';
import { lockingHelp, softLimit } from './locked-memory-limit.js';
import { OPENBLAS_HELP } from './native-errors.js';
import { cudaMajorOf } from './nvrtc.js';

/** One line of `npx millrace doctor`. */
export interface Finding {
  /** What was looked at, such as 'CUDA driver'. */
  readonly name: string;
  /** 'warning': something works less well, or not everything works. 'error': no device works. */
  readonly status: 'ok' | 'warning' | 'error';
  /** What was found, for people to read. */
  readonly value: string;
  /** What to do about it, one way a line; absent where nothing needs to be done. */
  readonly remedy?: string;
}

const OLDEST_NODE = [20, 19] as const;
const LOCK_PROBE_BYTES = 64 << 20;

const findings: Finding[] = [];
const ok = (name: string, value: string): void => void findings.push({ name, status: 'ok', value });
const warn = (name: string, value: string, remedy: string): void => void findings.push({ name, status: 'warning', value, remedy });

/** Adds the error of a part that does not work, with its remedies. */
function failed(name: string, error: unknown, status: 'warning' | 'error'): void {
  const { message } = error as Error;
  const [value = '', ...others] = message.replace(/^K\d+: /, '').split('\n');
  const help = error instanceof MillraceError && 'help' in error ? (error.help as readonly string[]) : others.map((line) => line.trim());
  const remedy = remedyOf(value) ?? help.join('\n');
  findings.push({ name, status, value, ...(remedy !== '' && { remedy }) });
}

function content(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

function reportSystem(): void {
  const name = platformName();
  const value = `${name}, kernel ${release()}${/microsoft/i.test(content('/proc/version')) ? ', WSL 2' : ''}`;
  if (platformPackage() === undefined || name.includes('musl')) {
    const remedy = 'Use Linux with glibc on x64 or arm64, for example a Debian or Ubuntu container.';
    findings.push({ name: 'system', status: 'error', value, remedy });
  } else if (!existsSync('/proc/self')) warn('system', `${value}, /proc is not mounted`, 'Mount it: mount -t proc proc /proc');
  else ok('system', value);
  const container = containerOf();
  if (container !== undefined) ok('container', container);
}

function containerOf(): string | undefined {
  if (process.env['KUBERNETES_SERVICE_HOST'] !== undefined) return 'Kubernetes';
  if (existsSync('/.dockerenv')) return 'Docker';
  if (existsSync('/run/.containerenv')) return 'Podman';
  return process.env['container'];
}

function reportNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isNew = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isNew) ok('node', process.version);
  else warn('node', process.version, `Install Node ${OLDEST_NODE.join('.')} or later.`);
  ok('millrace', VERSION);
}

function reportVariables(): void {
  const given = Object.keys(process.env).filter((name) => /^MILL?RACE_/.test(name) && !OF_DEVELOPERS.test(name));
  const unknown = given.filter((name) => !VARIABLES.includes(name));
  const known = given.filter((name) => VARIABLES.includes(name)).map((name) => `${name}=${process.env[name]!}`);
  if (known.length > 0) ok('variables', known.join(' '));
  for (const name of unknown) {
    warn('variables', `${name} is no variable of Millrace`, `Did you mean ${nearestVariable(name)}? Otherwise unset it.`);
  }
  const cache = process.env['MILLRACE_CACHE'];
  if (cache !== undefined && cache !== '' && cache !== 'off')
    warn(
      'variables',
      `MILLRACE_CACHE=${cache} has no effect`,
      'Set MILLRACE_CACHE=off to keep nothing, or MILLRACE_CACHE_DIR to name the folder.',
    );
}

function reportAddon(): Binding | undefined {
  try {
    const { path, origin } = addonPlace();
    // The loader would end the process.
    if (isCutOff(path)) {
      const message = `The native addon at ${path} is cut off.`;
      throw new UnavailableError('ERR_MILLRACE_UNAVAILABLE', message, installHelp(true));
    }
    const binding = loadBinding();
    const from = { variable: 'named by MILLRACE_ADDON', build: 'built in this clone', package: 'of the platform package' }[origin];
    ok('addon', `${path} (${from})`);
    return binding;
  } catch (error) {
    failed('addon', error, 'error');
    return undefined;
  }
}

/** Whether an ELF file ends before its table of sections does. */
function isCutOff(path: string): boolean {
  const bytes = readFileSync(path);
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46) return false;
  return Number(bytes.readBigUInt64LE(40)) + bytes.readUInt16LE(58) * bytes.readUInt16LE(60) > bytes.length;
}

function reportDriver(backends: readonly BackendReport[], binding: Binding): readonly NativeDeviceInfo[] {
  const cuda = backends.find(({ name }) => name === 'cuda');
  if (cuda === undefined || cuda.devices.length === 0) {
    const remedy = cuda?.help.join(' ') || 'The CPU device works without a GPU.';
    warn('CUDA driver', cuda?.reason.replace(/\.$/, '') || 'no GPU', remedy);
    return [];
  }
  const kernelModule = /NVRM version:.*?\s(\d+(?:\.\d+)+)\s/.exec(content('/proc/driver/nvidia/version'))?.[1];
  ok('CUDA driver', `CUDA ${cuda.driverVersion}${kernelModule === undefined ? '' : `, driver ${kernelModule}`}`);
  for (const { ordinal, name, totalMemoryBytes, computeCapability } of cuda.devices) {
    const slice = / MIG /.test(name) ? ', a MIG slice' : '';
    ok(`cuda:${ordinal}`, `${name}, ${bytesText(totalMemoryBytes)}, compute capability ${computeCapability.join('.')}${slice}`);
  }
  const visible = process.env['CUDA_VISIBLE_DEVICES'];
  if (visible !== undefined) ok('CUDA_VISIBLE_DEVICES', visible === '' ? "'' (no GPU is visible)" : visible);
  const libraries = binding.libraries();
  for (const { name, version, path } of libraries.filter((library) => library.name !== 'OpenBLAS')) ok(name, `${version} (${path})`);
  if (!libraries.some(({ name }) => name === 'cuBLASLt'))
    ok('cuBLASLt', 'none: matmul runs kernels of Millrace, which take 2 to 10 times as long. pip install nvidia-cublas brings it');
  if (!libraries.some(({ name }) => name === 'cuFFT'))
    ok('cuFFT', 'none: fft runs kernels of Millrace, which take 2 to 8 times as long. pip install nvidia-cufft brings it');
  if (!libraries.some(({ name }) => name === 'NCCL'))
    ok('NCCL', 'none: openCommunicator refuses GPUs. pip install nvidia-nccl-cu12 (or nvidia-nccl-cu13) brings it');
  ok('module loading', process.env['CUDA_MODULE_LOADING'] ?? "as the driver's default says (lazily, since CUDA 12.2)");
  const pipe = process.env['CUDA_MPS_PIPE_DIRECTORY'] ?? '/tmp/nvidia-mps';
  if (existsSync(`${pipe}/control`)) ok('MPS', `a daemon listens in ${pipe}: processes share the GPU`);
  return cuda.devices;
}

/** Only where the user asks for it: CPU devices have kernels of their own. */
function reportOpenBlas(binding: Binding | undefined): void {
  const asked = process.env['MILLRACE_OPENBLAS'];
  if (!asked || binding === undefined) return;
  const found = binding.libraries().find(({ name }) => name === 'OpenBLAS');
  if (found !== undefined) ok(found.name, `${found.version} (${found.path})`);
  else warn('OpenBLAS', `MILLRACE_OPENBLAS=${asked} names none that can be used, so CPU devices do not open`, OPENBLAS_HELP.join(' '));
}

/** Whether images built ahead of time serve this processor, and all GPUs. */
interface Ahead {
  readonly processor: boolean;
  readonly gpus: boolean;
}

async function reportImages(gpus: readonly NativeDeviceInfo[]): Promise<Ahead> {
  const name = 'kernels built ahead';
  const folder = process.env['MILLRACE_IMAGES'];
  if (!folder) return { processor: false, gpus: false };
  try {
    const images = new PrebuiltImages(folder.startsWith('file:') ? fileURLToPath(folder) : folder);
    const value = `${images.folder}: ${images.count} images for ${images.targetNames.join(', ') || 'no target'}`;
    const again = `Build them again: npx millrace build <modules> --out ${images.folder} --for ${images.targetNames.join(',')}`;
    if (!images.isOf(await packageIdentity())) {
      warn(name, `${value}, built by another version of this package, so they are not used`, again);
      return { processor: false, gpus: false };
    }
    const lacking = gpus.filter(({ computeCapability }) => images.targetsFor(computeCapability).length === 0);
    const serves = { processor: images.targetsFor('processor').length > 0, gpus: lacking.length === 0 };
    const own = [...images.targetsFor('processor'), ...gpus.flatMap(({ computeCapability }) => images.targetsFor(computeCapability))];
    const faults = images.faultsFor(own);
    if (faults.length > 0) {
      const count =
        faults.length === 1 ? 'one image for this machine is not used' : `${faults.length} images for this machine are not used`;
      warn(name, `${value}; ${count}: ${faults[0]}`, again);
      return { processor: false, gpus: false };
    }
    const targets = [
      ...(serves.processor ? [] : [targetOfProcessor(processorFlags())]),
      ...new Set(lacking.map(({ computeCapability }) => `sm_${computeCapability.join('')}`)),
    ];
    if (targets.length === 0) ok(name, value);
    else warn(name, `${value}; none for ${targets.join(' and ')} of this machine`, `Build them with --for ${targets.join(',')} as well.`);
    return serves;
  } catch (error) {
    // Devices do not open.
    failed(name, error, 'error');
    return { processor: false, gpus: false };
  }
}

const FROM_IMAGES = 'none; kernels come from MILLRACE_IMAGES';

async function reportCompilers(binding: Binding | undefined, gpus: readonly NativeDeviceInfo[], driver: number | undefined): Promise<void> {
  const ahead = await reportImages(gpus);
  const nvrtc = binding?.nvrtc();
  if (nvrtc !== undefined) ok('CUDA compiler', `NVRTC ${nvrtc.version.join('.')} (${nvrtc.path})`);
  else await reportNvcc(gpus.length > 0, gpus.length > 0 && ahead.gpus, driver);
  try {
    ok('C++ compiler', named(await findCxx()));
  } catch (error) {
    if (ahead.processor) ok('C++ compiler', FROM_IMAGES);
    else failed('C++ compiler', error, 'warning');
  }
}

/** Where there is no NVRTC. `driver`: the major version of CUDA that it supports. */
async function reportNvcc(hasGpu: boolean, hasImages: boolean, driver: number | undefined): Promise<void> {
  const name = 'CUDA compiler';
  try {
    const nvcc = await findNvcc(process.env, driver);
    const fault = await faultOfNvcc(nvcc);
    const value = named(nvcc);
    const major = majorOf(nvcc);
    const help = nvrtcHelp(process.env, driver ?? major);
    if (fault !== undefined && hasImages) ok(name, `${value}, which cannot build (${fault}); kernels come from MILLRACE_IMAGES`);
    else if (fault !== undefined) {
      const remedy = /output file|tmpxft/.test(fault)
        ? 'Set TMPDIR to a folder that exists, has room and can be written to.'
        : hostHelp(nvcc);
      warn(name, `${value}, which cannot build: ${fault}`, `${remedy}\nOr: ${help}`);
    } else if (hasGpu && driver !== undefined && major !== undefined && major > driver)
      warn(name, `${value}, whose code this driver (CUDA ${driver}) does not load`, `${help} Or install a newer driver.`);
    else if (hasGpu) warn(name, `${value}. Without NVRTC, kernels of cudaKernel that are templates are not built`, help);
    else ok(name, `${value}; kernels of cudaKernel that are templates need NVRTC`);
  } catch (error) {
    if (hasImages) ok(name, FROM_IMAGES);
    else if (hasGpu || process.env['MILLRACE_NVCC']) failed(name, error, 'warning');
    else ok(name, 'none, and no GPU that needs one');
  }
}

function named({ label, command }: Toolchain): string {
  return `${label} (${realpathSync(command)})`;
}

const OWN_CACHE = 'Set MILLRACE_CACHE_DIR to an empty folder, or one that is not there, that only this user can write to';
/** Kernels and what a compiler writes beside them take less. */
const LITTLE_ROOM_BYTES = 16 << 20;
const NOT_NOEXEC = 'on a file system that is not mounted noexec.';

async function reportFolders(): Promise<void> {
  let isLoadable = false;
  try {
    const { folder, reason, instead, files, bytes: size } = await cacheContents();
    const place = folder === undefined ? '' : existingPart(folder);
    if (folder === undefined) ok('kernel cache', 'off (MILLRACE_CACHE=off)');
    else if (isNoExec(place)) warn('kernel cache', `${folder} is not used: ${place} is mounted noexec`, `${OWN_CACHE}, ${NOT_NOEXEC}`);
    else if (reason !== undefined) warn('kernel cache', `${folder} is not used: ${reason}`, remedyOf(reason) ?? `${OWN_CACHE}.`);
    else if (isFull(place))
      warn('kernel cache', `${folder}: the file system has no room, so built kernels are not kept`, `Make room there. Or: ${OWN_CACHE}.`);
    else {
      isLoadable = true;
      const what = existsSync(folder)
        ? `${files.length === 1 ? 'one file' : `${files.length} files`}, ${bytesText(size)}, mode ${modeAndOwner(folder)}`
        : 'which the first build makes';
      if (instead === undefined) ok('kernel cache', `${folder}, ${what}`);
      else warn('kernel cache', `${folder}, ${what}; ${instead}`, `${OWN_CACHE}.`);
    }
    if (process.env['MILLRACE_CACHE_DIR']?.startsWith('~') === true)
      warn(
        'kernel cache',
        `${folder}: nothing replaced the ~ in MILLRACE_CACHE_DIR`,
        'Give the whole path, or let a shell replace it: "$HOME/...".',
      );
  } catch (error) {
    failed('kernel cache', error, 'warning');
  }
  try {
    const folder = dirname(temporaryFolder());
    if (isFull(folder))
      warn('temporary folder', `${folder}: the file system has no room`, 'Make room there, or set TMPDIR to a folder on another one.');
    else if (!isNoExec(folder)) ok('temporary folder', folder);
    else if (isLoadable) ok('temporary folder', `${folder}, mounted noexec: built kernels are loaded from the kernel cache`);
    else
      warn(
        'temporary folder',
        `${folder}, mounted noexec, so built kernels cannot be loaded from there`,
        `Set TMPDIR to a folder ${NOT_NOEXEC}`,
      );
  } catch (error) {
    failed('temporary folder', error, 'warning');
  }
}

function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < LITTLE_ROOM_BYTES;
}

function modeAndOwner(folder: string): string {
  const { mode, uid } = statSync(folder);
  const own = uid === process.geteuid!() ? ownName() : undefined;
  return `${(mode & 0o7777).toString(8)} of ${own ?? `uid ${uid}`}`;
}

/** Undefined where this user has no entry in the system's list. */
function ownName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

function reportLimits(binding: Binding | undefined, hasGpu: boolean): void {
  const name = 'page-locked memory';
  const soft = softLimit();
  const limit = soft === 'unlimited' ? 'no limit' : `limit ${soft === undefined ? 'unknown' : bytesText(Number(soft))}`;
  const refusal = binding?.lockProbe(LOCK_PROBE_BYTES);
  const probed = bytesText(LOCK_PROBE_BYTES);
  if (refusal === undefined) ok(name, limit);
  else if (refusal === 0)
    ok(
      name,
      Number(soft) < LOCK_PROBE_BYTES ? `${limit}, which this user may exceed: ${probed} were locked` : `${limit}, ${probed} were locked`,
    );
  else if (hasGpu) warn(name, `${limit}: the system does not lock ${probed} (${errorName(refusal)})`, lockingHelp());
  else ok(name, `${limit}; only copies to and from a GPU use such memory`);
  // Without a limit, a number that is larger than any memory.
  const most = process.constrainedMemory() ?? 0;
  const limited = most > 0 && most < totalmem() ? `, limited to ${bytesText(most)} by the cgroup` : '';
  ok('memory', `${bytesText(totalmem())}${limited}`);
  const [quota, period] = content('/sys/fs/cgroup/cpu.max').split(' ').map(Number);
  const share = quota! > 0 && period! > 0 ? `, limited to ${(quota! / period!).toFixed(1)} by the cgroup` : '';
  ok('processors', `${availableParallelism()} (${cpus()[0]?.model.trim() || process.arch})${share}`);
}

/** `ENOMEM` for example. */
function errorName(code: number): string {
  return Object.entries(constants.errno).find(([, one]) => one === code)?.[0] ?? `errno ${code}`;
}

async function report(): Promise<readonly Finding[]> {
  reportSystem();
  reportNode();
  reportVariables();
  const binding = reportAddon();
  const backends = binding?.enumerate();
  const gpus = binding === undefined || backends === undefined ? [] : reportDriver(backends, binding);
  reportOpenBlas(binding);
  await reportCompilers(binding, gpus, backends && cudaMajorOf(backends));
  await reportFolders();
  reportLimits(binding, gpus.length > 0);
  return findings;
}

void report().then((found) => parentPort?.postMessage(found));
