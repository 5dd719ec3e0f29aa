// The commands of `npx millrace` except build: what they print, and their exit codes.
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type Diagnostics, diagnostics, type Finding } from 'millrace';
import { machineFault } from '../../dist/toolchain/base/diagnostics.js';
import { packageIdentity } from '../../dist/toolchain/base/package-and-cpu-identity.js';
import { asImageFile } from '../../dist/toolchain/images/cache.js';
import { remedyOf } from '../../dist/toolchain/system/environment-errors.js';
import { FAKE_DRIVER } from '../support/fake-driver.js';
import { called, MAIN, millrace, run, scratch } from './cli-command.js';

/** `diagnostics()` in a process of its own: `doctor` without the trials. */
async function diagnosed(env: NodeJS.ProcessEnv): Promise<Diagnostics> {
  const url = new URL('../index.js', pathToFileURL(MAIN)).href;
  const program = `import { diagnostics } from '${url}'; console.log(JSON.stringify(await diagnostics()));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, ...env },
  });
  return JSON.parse(stdout) as Diagnostics;
}

test('a call that cannot be understood ends with 2 and one line', async () => {
  const calls: readonly (readonly [readonly string[], RegExp])[] = [
    [['nothing'], /There is no command 'nothing'/],
    [['buidl', 'a.mjs'], /There is no command 'buidl' \(did you mean build\?\)/],
    [['help', 'cahe'], /There is no command 'cahe' \(did you mean cache\?\)/],
    [['--jsno'], /Unknown option `--jsno`/],
    [['demo', '--n', '5'], /Unknown option `--n`\. See/],
    [['demo', '-n', '5'], /Unknown option `-n`\. See/],
    [['build'], /needs the modules/],
    [['build', 'a.mjs'], /needs --for/],
    [['build', 'a.mjs', '--for', ''], /There is no target ''/],
    [
      ['build', 'a.mjs', '--for', 'sm_80', '--for', 'cpu:x86_64-v3'],
      /'cpu:x86_64-v3' \(did you mean cpu:x86-64-v3\?\).*cpu:aarch64, sm_80/,
    ],
    [['build', 'a.mjs', '--for', '80'], /There is no target '80'/],
    [['build', 'a.mjs', '--for', 'sm_80', '--out', ''], /needs a folder/],
    [['build', 'a.mjs', '--for', 'sm_80', '--out', 'package.json'], /needs a folder after --out, and package\.json is a file/],
    [['cache', '--oldr', '3'], /Unknown option `--oldr` \(did you mean --older\?\)/],
    [['cache', 'clena'], /no action 'clena' \(did you mean clean\?\)/],
    [['cache', '--older', '30d'], /millrace cache clean --older 30d/],
    [['cache', 'clean', '--older', '1x'], /The age \(1x\) is none such as 12h, 30d or 4w/],
    [['cache', 'clean', '--older', ''], /The age \(\) is none/],
    [['cache', 'clean', '--older', '1e3'], /The age \(1e3\) is none/],
    [['top', '--connect', ''], /is no address of a live view/],
    [['top', '--connect', 'file:///etc/passwd'], /is no address of a live view/],
    [['top', '--connect', 'http://127.0.0.1:9000'], /is no address of a live view/],
  ];
  const ended = await called(calls.map(([args]) => args));
  for (const [n, [args, message]] of calls.entries()) {
    const { code, stdout, stderr } = ended[n]!;
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.trim()).not.toContain('\n');
  }
});

test('cache shows and cleans what has not been used for so long', async () => {
  const folder = mkdtempSync(join(scratch, 'cache-'));
  const env = { MILLRACE_CACHE_DIR: folder };
  expect((await millrace(['cache'], env)).stdout).toBe(`${folder} is empty.\n`);
  for (const [name, hours] of [
    ['a.so', 40 * 24 + 1],
    ['b.so', 5.5],
    ['notes.txt', 99 * 24],
  ] as const) {
    writeFileSync(join(folder, name), 'x'.repeat(300 << 10));
    utimesSync(join(folder, name), Date.now() / 1000, Date.now() / 1000 - hours * 3600);
  }
  expect((await millrace(['cache'], env)).stdout).toBe(
    `${folder}: 2 files, 600 KiB.\nLast used 40 days ago (the oldest) to 5 hours ago.\n`,
  );
  expect((await millrace(['cache', 'clean', '--older', '30d'], env)).stdout).toBe('1 file removed, 300 KiB.\n');
  expect(readdirSync(folder).toSorted()).toEqual(['b.so', 'notes.txt']);
  expect((await millrace(['cache'], env)).stdout).toContain('1 file, 300 KiB.\nLast used 5 hours ago.\n');
  expect((await millrace(['cache', 'clean'], env)).stdout).toBe('1 file removed, 300 KiB.\n');
  expect(readdirSync(folder)).toEqual(['notes.txt']);
  expect((await millrace(['cache'], { MILLRACE_CACHE: 'off' })).stdout).toMatch(/not kept/);
});

describe('doctor', () => {
  test('finds what this machine has, runs a kernel, and ends with 0', async () => {
    const { code, stdout } = await millrace(['doctor'], { MILLRACE_CACHE_DIR: join(scratch, 'none-yet') });
    expect(code).toBe(0);
    for (const name of ['system', 'node', 'addon', 'C\\+\\+ compiler', 'kernel cache', 'page-locked memory'])
      expect(stdout).toMatch(new RegExp(`^(?:ok|warning) +${name} `, 'm'));
    expect(stdout).toMatch(/^ok\s+try cpu:0\s+open\s+\S+\s+ms,\s+compile\s+\S+\s+ms,\s+copy,\s+launch\s+and\s+read\s+\S+\s+ms$/m);
    const tooLong = stdout.split('\n').filter((line) => line.length > 80 && line.trim().includes(' '));
    // A word, such as a path, may be longer than a line.
    expect(
      tooLong.filter((line) =>
        line
          .trim()
          .split(/\s+/)
          .every((word) => word.length < 50),
      ),
    ).toEqual([]);
  });

  test('in a container: a noexec TMPDIR, no /proc, and locked memory that root may not raise', async (context) => {
    const place = join(scratch, 'tmpfs');
    mkdirSync(place);
    const inside = async (script: string, env: NodeJS.ProcessEnv = {}): Promise<(name: string) => Finding | undefined> => {
      const command = `${script} "$0" "$1" doctor --json`;
      const { code, stdout, stderr } = await run('unshare', ['-m', 'sh', '-c', command, process.execPath, MAIN], env, scratch);
      context.skip(code !== 0 && stdout === '', `mounts may not be changed here: ${stderr}`);
      const { findings } = JSON.parse(stdout) as Diagnostics;
      return (name) => findings.find((one) => one.name === name);
    };
    const noexec = await inside(
      `mount -t tmpfs -o noexec none ${place} && exec setpriv --bounding-set=-sys_resource,-ipc_lock prlimit --memlock=65536:65536`,
      { TMPDIR: place, MILLRACE_CACHE_DIR: join(place, 'cache'), ...(FAKE_DRIVER && { MILLRACE_CUDA_DRIVER: FAKE_DRIVER }) },
    );
    for (const name of ['kernel cache', 'temporary folder'])
      expect(noexec(name)).toMatchObject({
        status: 'warning',
        value: expect.stringContaining('mounted noexec'),
        remedy: expect.stringMatching(/^Set (?:TMPDIR|MILLRACE_CACHE_DIR) to .* not mounted noexec\.$/),
      });
    const procless = await inside('umount -l /proc &&');
    expect(procless('system')).toMatchObject({ status: 'warning', remedy: 'Mount it: mount -t proc proc /proc' });
    expect(procless('temporary folder')).toMatchObject({ status: 'ok' });
    expect(procless('page-locked memory')!.value).toContain('limit unknown');
    expect(procless('try cpu:0')).toMatchObject({ status: 'ok' });
    if (FAKE_DRIVER === undefined) return;
    expect(noexec('page-locked memory')).toMatchObject({
      status: 'warning',
      value: 'limit 64 KiB: the system does not lock 64.0 MiB (ENOMEM)',
      remedy: expect.stringMatching(/^Raise it: as root /),
    });
  });

  test('a compiler that cannot build is found although the cache has kernels, with a remedy for the cause', async () => {
    const env = { MILLRACE_CACHE_DIR: join(scratch, 'kept') };
    const trialOf = async (more: NodeJS.ProcessEnv): Promise<Finding> => {
      const { stdout } = await millrace(['doctor', '--json'], { ...env, ...more });
      return (JSON.parse(stdout) as Diagnostics).findings.find(({ name }) => name === 'try cpu:0')!;
    };
    expect((await trialOf({})).status).toBe('ok');
    for (const [at, [words, remedy]] of (
      [
        ["g++: fatal error: cannot execute 'as': execvp: No such file or directory", /folder of the programs as and ld/],
        ["collect2: fatal error: cannot find 'ld'", /folder of the programs as and ld/],
        ["cc1plus: error: unrecognized command line option '-std=c++17'", /too old/],
        ['as: /tmp/x.o: No space left on device', /Make room/],
      ] as const
    ).entries()) {
      expect([machineFault(words), remedyOf(words)]).toEqual([words, expect.stringMatching(remedy)]);
      if (at > 0) continue;
      const broken = join(scratch, 'broken-g++');
      writeFileSync(broken, `#!/bin/sh\n[ "$1" = --version ] && echo "g++ 12.2.0" && exit\necho "${words}" >&2; exit 1\n`, { mode: 0o755 });
      expect(await trialOf({ MILLRACE_CXX: broken })).toMatchObject({
        status: 'warning',
        value: expect.stringContaining(words),
        remedy: expect.stringMatching(remedy),
      });
    }
  });

  test('variables that nothing reads are named, with the one that was meant', async () => {
    const { findings } = await diagnosed({ MILLRACE_CX: 'g++', MILLRACE_CACHE: 'of', MILLRACE_SIMD: 'off' });
    const found = findings.filter(({ name }) => name === 'variables');
    expect(found).toMatchObject([
      { status: 'ok', value: expect.stringMatching(/\bMILLRACE_CACHE=of .*\bMILLRACE_SIMD=off\b/) },
      { status: 'warning', value: 'MILLRACE_CX is no variable of Millrace', remedy: 'Did you mean MILLRACE_CXX? Otherwise unset it.' },
      { status: 'warning', remedy: expect.stringContaining('MILLRACE_CACHE=off') },
    ]);
  });

  test('the kernel cache is the folder that builds use, or why they do not', async () => {
    const cacheOf = async (env: NodeJS.ProcessEnv): Promise<Finding> =>
      (await diagnosed({ MILLRACE_CACHE_DIR: '', ...env })).findings.find(({ name }) => name === 'kernel cache')!;
    const [home, temporary, open] = ['fresh-home', 'own-tmp', 'open-parent'].map((name) => join(scratch, name));
    for (const folder of [home!, temporary!, open!]) mkdirSync(folder);
    const instead = join(temporary!, `millrace-kernels-${process.geteuid!()}`);
    mkdirSync(instead, { mode: 0o700 });
    const env = { HOME: home, XDG_CACHE_HOME: '', TMPDIR: temporary };
    // Of a user with a home, the folder that takes its place elsewhere is not used.
    expect(await cacheOf(env)).toMatchObject({ status: 'ok', value: `${home}/.cache/millrace/kernels, which the first build makes` });
    writeFileSync(join(home!, '.cache'), '');
    expect(await cacheOf(env)).toMatchObject({
      status: 'warning',
      value: expect.stringMatching(new RegExp(`^${instead}, .*; ${home}/.cache/`)),
    });
    chmodSync(open!, 0o777);
    const below = await cacheOf({ MILLRACE_CACHE_DIR: join(open!, 'cache') });
    expect(below).toMatchObject({
      status: 'warning',
      value: expect.stringContaining('other users may write'),
      remedy: expect.stringContaining('empty folder'),
    });
  });

  test('an addon that is cut off is an error, and does not end the process', async () => {
    const cut = join(scratch, 'cut.node');
    writeFileSync(cut, readFileSync(join(MAIN, '../../../build/Release/millrace.node')).subarray(0, 100_000));
    const { code, stdout } = await millrace(['doctor', '--json'], { MILLRACE_ADDON: cut });
    expect(code).toBe(1);
    expect((JSON.parse(stdout) as Diagnostics).findings.find(({ name }) => name === 'addon')).toMatchObject({
      status: 'error',
      value: expect.stringContaining('is cut off'),
      remedy: expect.stringMatching(/./),
    });
  });

  test('images built ahead of time stand in for compilers, and a folder that is not loaded is the error', async () => {
    const ahead = async (folder: string, targets: readonly string[], mode: number, damaged = 0): Promise<readonly Finding[]> => {
      const path = join(scratch, folder);
      mkdirSync(path);
      const images = targets.map((target) => ({ file: `${target}.so`, kernel: 'k', target, compiler: 'g++' }));
      writeFileSync(
        join(path, 'manifest.json'),
        JSON.stringify({ format: 1, package: await packageIdentity(), targets, images, checked: [] }),
      );
      for (const [at, { file }] of images.entries())
        writeFileSync(join(path, file), asImageFile(Buffer.from(file)).subarray(at < damaged ? 1 : 0), { mode: 0o644 });
      chmodSync(path, mode);
      const names = { MILLRACE_CUDA_DRIVER: FAKE_DRIVER ?? '/nonexistent', MILLRACE_NVRTC: '/nonexistent', MILLRACE_NVCC: '/nonexistent' };
      const env = { ...names, MILLRACE_IMAGES: pathToFileURL(path).href, MILLRACE_CXX: '/nonexistent', MILLRACE_CACHE: 'off' };
      const { code, stdout } = await millrace(['doctor', '--json'], env);
      const { findings } = JSON.parse(stdout) as Diagnostics;
      expect(code).toBe(findings.some(({ status }) => status === 'error') ? 1 : 0);
      return findings;
    };
    const all = ['cpu:x86-64', 'cpu:aarch64', 'sm_90'];
    const [suited, bad, others, open] = await Promise.all([
      ahead('suited', all, 0o755),
      ahead('damaged', all, 0o755, 2),
      ahead('others', ['sm_10'], 0o755),
      ahead('open', all, 0o777),
    ]);
    const ofImages = (findings: readonly Finding[]) => findings.find(({ name }) => name === 'kernels built ahead');
    expect(ofImages(suited)).toMatchObject({ status: 'ok', value: expect.stringContaining('3 images for cpu:x86-64, cpu:aarch64, sm_90') });
    const trials = suited.filter(({ name }) => /compiler$|^try/.test(name));
    expect(trials.map(({ status }) => status)).toEqual(trials.map(() => 'ok'));
    expect(trials.at(-1)!.value).toMatch(/^open .*, copy and read .*; no kernel was launched/);
    expect(ofImages(bad)).toMatchObject({
      status: 'warning',
      value: expect.stringMatching(/one image for this machine is not used: .*damaged\/cpu:\S+\.so is damaged or cut off/),
      remedy: expect.stringContaining('npx millrace build'),
    });
    expect(bad.find(({ name }) => name === 'C++ compiler')).toMatchObject({ status: 'warning' });
    expect(ofImages(others)).toMatchObject({ status: 'warning', remedy: expect.stringMatching(/--for cpu:/) });
    expect(others.find(({ name }) => name === 'C++ compiler')).toMatchObject({
      status: 'warning',
      remedy: expect.stringContaining('unset it'),
    });
    expect(ofImages(open)).toMatchObject({ status: 'error', remedy: expect.stringContaining('chmod') });
    expect(open.some(({ name }) => name.startsWith('try'))).toBe(false);
  });

  test.runIf(FAKE_DRIVER !== undefined)(
    'says what nvcc needs: a C++ compiler, a driver of its release, and NVRTC for templates',
    async () => {
      const nvcc = async (name: string, release: string, text: string): Promise<Finding> => {
        const path = join(scratch, name);
        writeFileSync(path, `#!/bin/sh\n[ "$1" = --version ] && echo "release ${release}, V${release}.1" && exit\n${text}\n`, {
          mode: 0o755,
        });
        // NVRTC is not hidden by its variable, whose remedy would be to unset it.
        const home = { HOME: scratch, CUDA_HOME: '', CUDA_PATH: '', VIRTUAL_ENV: '', CONDA_PREFIX: '' };
        const { findings } = await diagnosed({ ...home, MILLRACE_CUDA_DRIVER: FAKE_DRIVER, MILLRACE_NVCC: path });
        return findings.find((one) => one.name === 'CUDA compiler')!;
      };
      const [hostless, newer, alone] = await Promise.all([
        nvcc('hostless', '12.4', 'echo "gcc: No such file or directory" >&2; exit 1'),
        nvcc('newer', '99.1', 'exit 0'),
        nvcc('alone', '12.4', 'exit 0'),
      ]);
      // A machine with NVRTC says only that.
      if (hostless.value.startsWith('NVRTC')) return;
      expect(hostless).toMatchObject({
        status: 'warning',
        value: expect.stringMatching(/^nvcc 12.4.1 .* cannot build: gcc: No such file or directory$/),
      });
      expect(hostless.remedy).toMatch(/apt-get install g\+\+.*hostless -ccbin.*\nOr: Install NVRTC/);
      expect(newer).toMatchObject({ status: 'warning', value: expect.stringContaining('does not load') });
      expect(alone).toMatchObject({ status: 'warning', value: expect.stringContaining('templates') });
      // The fake driver is one of CUDA 13.
      for (const { remedy } of [hostless, newer, alone]) expect(remedy).toContain('"nvidia-cuda-nvrtc==13.*"');
    },
  );

  test('without an addon ends with 1 and the remedy; --json is the object of diagnostics()', async () => {
    const { code, stdout } = await millrace(['doctor', '--json'], { MILLRACE_ADDON: '/nonexistent.node' });
    const { findings } = JSON.parse(stdout) as Diagnostics;
    expect(code).toBe(1);
    expect(findings.find(({ name }) => name === 'addon')).toMatchObject({
      status: 'error',
      remedy: expect.stringContaining('MILLRACE_ADDON'),
    });
    expect(findings.some(({ name }) => name.startsWith('try'))).toBe(false);
  });

  test('without compilers names the GPUs of a driver, warns, and says how to do without', async () => {
    const { code, stdout } = await millrace(['doctor', '--json'], {
      MILLRACE_CUDA_DRIVER: FAKE_DRIVER ?? '/nonexistent',
      MILLRACE_NVRTC: '/nonexistent',
      MILLRACE_NVCC: '/nonexistent',
      MILLRACE_CXX: '/nonexistent',
      MILLRACE_CACHE: 'off',
    });
    const { findings } = JSON.parse(stdout) as Diagnostics;
    const found = (what: string): Finding | undefined => findings.find(({ name }) => name === what);
    expect(code).toBe(0);
    expect(found('try cpu:0')).toMatchObject({ status: 'warning', remedy: expect.stringContaining('ahead of time') });
    for (const name of FAKE_DRIVER === undefined ? ['C++ compiler'] : ['CUDA compiler', 'C++ compiler'])
      expect(found(name)).toMatchObject({ status: 'warning', remedy: expect.stringContaining('unset it') });
    if (FAKE_DRIVER !== undefined)
      expect(found('cuda:0')).toMatchObject({ status: 'ok', value: expect.stringMatching(/GiB, compute capability \d/) });
  });

  test('diagnostics() leaves the event loop and the process alone', async () => {
    const { findings } = await diagnostics();
    expect(findings.filter(({ status }) => status === 'error')).toEqual([]);
  });
});

test('devices and help', async () => {
  const [devices, none, build, ...versions] = await called([['devices'], [], ['help', 'build'], ['--version'], ['doctor', '--version']]);
  expect(devices!.stdout).toMatch(/^cpu:0 +\S.*GiB$/m);
  expect(none!.stdout).toMatch(/doctor[^]*devices[^]*build[^]*cache[^]*demo/);
  expect(build!.stdout).toMatch(/millrace build \[\.\.\.modules\][^]*--out <folder>[^]*--for <targets>/);
  for (const { stdout } of versions) expect(stdout).toMatch(/^millrace\/\d+\.\d+\.\d+/);
  // As a shell runs it.
  expect((await run(MAIN, ['help'], {}, scratch)).stdout).toMatch(/doctor[^]*devices[^]*build[^]*cache[^]*demo/);
});
