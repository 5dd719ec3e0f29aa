// A row of the matrix: a machine on which nothing may be written, there is no compiler, and the user is no user of the system. A program in a
// hardened container meets all of it at once.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { type Ran, run } from './registry.js';

/** Every mount is read-only but $TMPDIR; what follows runs as a user without a passwd entry, with these variables alone. */
const ENTER = `set -e
mount --make-rprivate /
while read -r _ place type _; do
  case "$type" in proc|sysfs|cgroup*) continue;; esac
  mount -o remount,bind,ro "$place"
done < /proc/self/mounts
mount -t tmpfs none "$TMPDIR"
chmod 1777 "$TMPDIR"
exec setpriv --reuid=54321 --regid=54321 --clear-groups /usr/bin/env -i PATH=/none TMPDIR="$TMPDIR" "$@"`;

const SYSTEM = ['unshare', '--mount', 'sh', '-c', ENTER, 'sh'] as const;

/** Empty where it works: else why containers or users may not change mounts here. */
function refusal(folder: string): string {
  const [program, ...args] = SYSTEM;
  const { status, stderr, error } = spawnSync(program, [...args, process.execPath, '--version'], {
    env: { ...process.env, TMPDIR: folder },
    encoding: 'utf8',
  });
  return status === 0 ? '' : (error?.message ?? stderr.trim());
}

/** `copy` makes a project with these files. */
export function rowOfReadOnlySystem(copy: (name: string, files: Readonly<Record<string, string>>) => string, target: string): void {
  test('where only TMPDIR can be written to, without compiler, HOME and passwd entry, with images of the program and of the package', async (context) => {
    const project = copy('read-only', {
      'kernels.mjs': `import { f32, inout, input, kernel } from 'millrace';
        export const saxpy = kernel('saxpy', { a: f32, x: input(f32), y: inout(f32) }, ({ a, x, y }, { i }) => { y[i] = a * x[i] + y[i]; });`,
      'hello.mjs': `import { writeFileSync } from 'node:fs';
        import { userInfo } from 'node:os';
        import { openDevice } from 'millrace';
        import { logicalAnd, sum } from 'millrace/ops';
        import { saxpy } from './kernels.mjs';
        const codeOf = (fn) => { try { return fn(); } catch ({ code, info }) { return info?.code ?? code; } };
        console.log(codeOf(() => writeFileSync('x', '')), codeOf(() => writeFileSync('/dev/shm/x', '')), codeOf(userInfo), Object.keys(process.env).join());
        const device = await openDevice('auto', { images: new URL('./images', import.meta.url) });
        const x = device.from(new Float32Array([1, 2, 3, 4]));
        const y = device.from(new Float32Array([10, 20, 30, 40]));
        device.stream.launch(saxpy, y.length, { a: 2, x, y });
        console.log(await y.read());
        const [a, b] = [[1, 0, 1, 1], [1, 1, 0, 1]].map((values) => device.from(values.map(Boolean), { dtype: 'bool' }));
        console.log(await logicalAnd(a, b).list(), await sum(a).item());
        await device.close();`,
    });
    const temporary = path.join(project, 'temporary');
    mkdirSync(temporary);
    // Another user has to find the packages.
    chmodSync(path.dirname(project), 0o755);
    const reason = refusal(temporary);
    context.skip(reason !== '', `mounts may not be changed here: ${reason}`);
    expect(await run('npx', ['millrace', 'build', 'kernels.mjs', '--for', target], project)).toMatchObject({ code: 0, stderr: '' });
    const [program, ...args] = SYSTEM;
    const ran: Ran = await run(program, [...args, process.execPath, 'hello.mjs'], project, { TMPDIR: temporary });
    expect(ran).toEqual({
      code: 0,
      stdout: 'EROFS EROFS ENOENT PATH,TMPDIR\nFloat32Array(4) [ 12, 24, 36, 48 ]\n[ true, false, false, true ] 3n\n',
      stderr: '',
    });
  });
}
