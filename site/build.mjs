// Builds the documentation as a site in build/site/html.
//   --base /path/   the site is served below this path
//   --serve         serves it afterwards;  --dev  serves the pages as they are written, and follows their files
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bin, root } from '../scripts/tools.mjs';
import { rmSync } from 'node:fs';
import { STAGE, stage } from './stage.mjs';

const { values } = parseArgs({
  options: { base: { type: 'string' }, serve: { type: 'boolean' }, dev: { type: 'boolean' }, port: { type: 'string', default: '4173' } },
});
rmSync(STAGE, { recursive: true, force: true });
await stage();
const vitepress = (...args) => {
  const env = values.base === undefined ? process.env : { ...process.env, SITE_BASE: values.base };
  const { status, error } = spawnSync(process.execPath, [bin('vitepress/bin/vitepress.js'), ...args], { cwd: root, stdio: 'inherit', env });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
};
if (values.dev) vitepress('dev', 'site', '--port', values.port);
else vitepress('build', 'site');
if (values.serve) vitepress('preview', 'site', '--port', values.port);
