// What scripts/build.mjs leaves of earlier builds.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const { removeForeignBuild, removeStale } = (await import(new URL('../../scripts/tools.mjs', import.meta.url).href)) as {
  readonly removeForeignBuild: (folder: string) => void;
  readonly removeStale: (compiled: string, sources: string) => void;
};

const folder = mkdtempSync(join(tmpdir(), 'millrace-stale-'));
const [dist, src] = [join(folder, 'dist'), join(folder, 'src')];
const write = (...files: readonly string[]): void => {
  for (const file of files) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
  }
};
const filesIn = (root: string): string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .toSorted();
const outputs = (stem: string): string[] => ['.d.ts', '.d.ts.map', '.js', '.js.map'].map((end) => stem + end);

describe('files of an earlier build', () => {
  beforeEach(() => rmSync(folder, { recursive: true, force: true }));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('are removed with their folders when their source is gone, and all others stay', () => {
    write(join(src, 'index.ts'), join(src, 'core/a.b.ts'));
    write(
      ...[...outputs('index'), ...outputs('renamed'), ...outputs('core/a.b'), ...outputs('gone/deep/old')].map((file) => join(dist, file)),
    );
    write(join(dist, 'package-identity'), join(dist, 'core/worker.cjs'), join(dist, 'core/worker.cjs.map'));
    removeStale(dist, src);
    const kept = [...outputs('index'), ...outputs('core/a.b'), 'package-identity', 'core/worker.cjs', 'core/worker.cjs.map'];
    expect(filesIn(dist)).toEqual(kept.toSorted());
    expect(existsSync(join(dist, 'gone'))).toBe(false);
  });
});

test('dist has no file without a source, except those that bundles share', () => {
  const ends = /(?:\.js|\.d\.ts)(?:\.map)?$/;
  const others = filesIn(join(ROOT, 'dist')).filter((file) => ends.test(file) && !existsSync(join(ROOT, 'src', file.replace(ends, '.ts'))));
  expect(others.filter((file) => !file.startsWith('cli/shared-'))).toEqual([]);
});

test('a build folder of a checkout that was copied or moved is removed, and says so; that of this checkout stays', () => {
  const build = mkdtempSync(join(tmpdir(), 'millrace-build-'));
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  try {
    // Never configured, this checkout by another name, another checkout, and one that is gone.
    const link = join(build, 'link');
    symlinkSync(ROOT, link);
    const left = [undefined, ROOT.replace(/\/$/, ''), link, tmpdir(), '/none'].map((home) => {
      const made = join(build, 'cmake');
      mkdirSync(made, { recursive: true });
      if (home !== undefined) writeFileSync(join(made, 'CMakeCache.txt'), `# a\nCMAKE_HOME_DIRECTORY:INTERNAL=${home}\nB:STRING=\n`);
      removeForeignBuild(made);
      return existsSync(made);
    });
    expect(left).toEqual([true, true, true, false, false]);
    const said = [tmpdir(), '/none'].map((home) => [`${join(build, 'cmake')} was made for ${home}: it is made anew.`]);
    expect(log.mock.calls).toEqual(said);
  } finally {
    log.mockRestore();
    rmSync(build, { recursive: true });
  }
});
