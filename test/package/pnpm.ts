// A row of the matrix: a project that pnpm has installed.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { run, type Ran } from './registry.js';

/** The only row whose tool is downloaded each time: a registry that cannot be reached is no fault of the package. */
const BOUNDED = ['--fetch-retries=1', '--fetch-retry-mintimeout=2000', '--fetch-retry-maxtimeout=2000', '--fetch-timeout=15000'];
const NO_REGISTRY = /\b(?:E(?:AI_AGAIN|CONNREFUSED|CONNRESET|NOTFOUND|TIMEDOUT|503|502|504)|ERR_SOCKET_TIMEOUT|network)\b/;

/** `folderOf` names the matrix's folder, `copy` makes a project with `hello.mjs` that is not installed yet, `node` runs a file. */
export function rowOfPnpm(
  quiet: readonly string[],
  folderOf: () => string,
  copy: (name: string) => string,
  node: (args: readonly string[], cwd: string) => Promise<Ran>,
  result: string,
): void {
  test('installed by pnpm', async (context) => {
    const tool = path.join(folderOf(), 'pnpm');
    const fetched = await run('npm', ['install', ...quiet, ...BOUNDED, '--prefix', tool, 'pnpm@10'], folderOf(), {}, 60_000);
    const isOffline = fetched.code === null || (fetched.code !== 0 && NO_REGISTRY.test(fetched.stderr));
    context.skip(isOffline, `the registry does not give pnpm: ${fetched.stderr.split('\n')[0]}`);
    expect(fetched).toMatchObject({ code: 0 });
    const project = copy('by-pnpm');
    const store = path.join(folderOf(), 'store');
    const pnpm = [path.join(tool, 'node_modules/pnpm/bin/pnpm.cjs'), 'install', '--prefer-offline', '--store-dir', store];
    const { code, stdout, stderr } = await node(pnpm, project);
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining('Done in')]);
    expect(readdirSync(path.join(project, 'node_modules'))).not.toContain('@millrace');
    expect(await node(['hello.mjs'], project)).toEqual({ code: 0, stdout: result, stderr: '' });
  }, 120_000);
}
