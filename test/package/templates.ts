// A row of the matrix: the projects that `npm create millrace` makes compile against the installed package, pass their tests, and pass them
// without a compiler from kernels built ahead of time.
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { IS_LONG } from '../support/long.js';
import { ROOT, run, tarball, VERSION } from './registry.js';

const TEMPLATES = ['service', 'pipeline', 'kernels'];

interface Place {
  readonly folder: string;
  /** A project with the packed library. */
  readonly installed: string;
}

/** What `npm install` would put there: the library as it is installed, and the tools of this repository. */
function install(project: string, installed: string): void {
  const modules = path.join(project, 'node_modules');
  mkdirSync(path.join(modules, '@types'), { recursive: true });
  for (const name of readdirSync(path.join(installed, 'node_modules')))
    if (!name.startsWith('.') && name !== '@types') symlinkSync(path.join(installed, 'node_modules', name), path.join(modules, name));
  for (const name of ['@types/node', 'undici-types']) symlinkSync(path.join(ROOT, 'node_modules', name), path.join(modules, name));
}

export function rowOfTemplates(place: () => Place, target: string): void {
  test('each template becomes a project that compiles and passes its test, also without a compiler', { timeout: 120_000 }, async () => {
    const { folder, installed } = place();
    const made = path.join(folder, 'create');
    // Without this there would be a `node` only where the compilers are.
    const bare = path.join(made, 'bin');
    mkdirSync(bare, { recursive: true });
    symlinkSync(process.execPath, path.join(bare, 'node'));
    expect(await run('tar', ['xzf', tarball('create-millrace'), '-C', made], folder)).toMatchObject({ code: 0 });
    const create = path.join(made, 'package/main.mjs');
    const check = async (name: string): Promise<void> => {
      const project = path.join(made, `my-${name}`);
      expect(await run(process.execPath, [create, `my-${name}`, name], made), name).toMatchObject({ code: 0, stderr: '' });
      const manifest = JSON.parse(readFileSync(path.join(project, 'package.json'), 'utf8')) as {
        readonly name: string;
        readonly dependencies: Readonly<Record<string, string>>;
      };
      expect([manifest.name, manifest.dependencies['millrace']]).toEqual([`my-${name}`, `^${VERSION}`]);
      expect(readFileSync(path.join(project, 'README.md'), 'utf8').split('\n').length).toBeLessThanOrEqual(30);
      expect(readdirSync(project)).toEqual(expect.arrayContaining(['.dockerignore', '.gitignore', 'Dockerfile']));
      install(project, installed);
      expect(await run(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc')], project), name).toMatchObject({
        code: 0,
        stdout: '',
      });
      const tests = readdirSync(path.join(project, 'dist')).flatMap((file) => (file.endsWith('.test.js') ? [`dist/${file}`] : []));
      expect(tests.length).toBe(1);
      const cache = { MILLRACE_CACHE_DIR: path.join(made, 'cache') };
      // The tests of the others run without a compiler alone, from what is built next.
      if (IS_LONG || name === TEMPLATES[0])
        expect(await run(process.execPath, ['--test', ...tests], project, cache), name).toMatchObject({ code: 0 });
      const build = ['node_modules/millrace/dist/cli/main.js', 'build', 'dist/kernels.js', '--out', 'images', '--for', target];
      expect(await run(process.execPath, build, project, cache), name).toMatchObject({ code: 0 });
      const shipped = { PATH: bare, MILLRACE_IMAGES: path.join(project, 'images'), MILLRACE_CACHE_DIR: path.join(made, 'no-cache') };
      expect(await run(process.execPath, ['--test', ...tests], project, shipped), name).toMatchObject({ code: 0 });
    };
    await Promise.all(TEMPLATES.map(check));
    for (const [args, said] of [
      [['my-service', 'service'], 'The folder my-service is not empty.\n'],
      [['other', 'website'], 'There is no template website; there are service, pipeline, kernels.\n'],
      [['Other', 'service'], 'Other cannot be the name of a package: small letters, digits, and . _ - behind the first.\n'],
      [['other'], ''],
    ] as const)
      expect(await run(process.execPath, [create, ...args], made)).toMatchObject({ code: 1, stderr: said });
  });
}
