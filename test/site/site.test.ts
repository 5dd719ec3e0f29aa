// The documentation as a site: it is built once, and its links, its search and the texts beside the pages are looked at.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { launchChromium, noChromium } from '../support/chromium.js';
import { IS_LONG } from '../support/long.js';

const ROOT = path.join(import.meta.dirname, '../..');
const SITE = path.join(ROOT, 'build/site/html');
// Not the root of a server: links have to hold below a folder as well.
const env = { ...process.env, SITE_BASE: '/millrace/', SITE_COLOURS: '0' };
const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', env });
const read = (file: string): string => readFileSync(path.join(SITE, file), 'utf8');

beforeAll(() => {
  const { status, stdout, stderr } = node('site/build.mjs');
  expect({ status, said: stdout + stderr }).toMatchObject({ status: 0 });
}, 180_000);

test('every link of every page leads to a page, a file or a heading, and no heading skips a level', () => {
  const { status, stdout } = node('site/check.mjs');
  expect({ status, stdout }).toMatchObject({ status: 0 });
});

test('every Markdown file of the documentation and of the examples is a page, and has its text beside it', () => {
  const files = ['docs', 'examples'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => (folder === 'docs' ? name : `examples/${name}`.replace(/\/README\.md$/, '.md'))),
  );
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => !existsSync(path.join(SITE, file.replace(/\.md$/, '.html'))))).toEqual([]);
  expect(files.filter((file) => !read(file).includes('# '))).toEqual([]);
});

test('the reference has every name that the entry points export', () => {
  const { exports } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>;
  };
  const entries = Object.keys(exports).filter((name) => name !== './package.json');
  const pages = entries.map((name) => read(`api/${name === '.' ? 'core' : name.slice(2)}/index.md`));
  for (const name of ['openDevice', 'DeviceArray', 'StreamHazardError', 'overlap', 'OpenOptions'])
    expect(pages[0]).toContain(`\`${name}\``);
  for (const page of pages) expect(page.match(/^\| \[`\w+`\]\(.+\) \| \S.* \|$/gm)?.length).toBeGreaterThan(2);
});

test.skipIf(noChromium)('text has a contrast of 4.5 on light and dark pages, and no script fails', { timeout: 60_000 }, async () => {
  const browser = await launchChromium();
  try {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await (await browser.newContext({ colorScheme })).newPage();
      const failed: string[] = [];
      page.on('pageerror', (error) => failed.push(error.message));
      await page.route('**/*', async (route) => {
        const file = new URL(route.request().url()).pathname.slice('/millrace/'.length);
        await route.fulfill({ path: path.join(SITE, file) });
      });
      // Of the dark pages the short form looks at one, which has text, code, tables and links.
      for (const name of colorScheme === 'light' || IS_LONG ? ['index.html', 'start.html', 'errors/K205.html'] : ['start.html']) {
        await page.goto(`http://site.test/millrace/${name}`);
        await page.addScriptTag({ path: path.join(ROOT, 'node_modules/axe-core/axe.min.js') });
        const rules = ['color-contrast', 'image-alt', 'link-name', 'page-has-heading-one'];
        const found = await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(rules)} }).then(({ violations, passes }) =>
          ({ violations: violations.map(({ id, nodes }) => [id, nodes[0].html]), passed: passes.length }))`);
        expect({ colorScheme, name, found }).toEqual({ colorScheme, name, found: { violations: [], passed: expect.any(Number) } });
        expect((found as { readonly passed: number }).passed).toBeGreaterThan(2);
      }
      expect(failed).toEqual([]);
    }
  } finally {
    await browser.close();
  }
});

test('llms.txt names the pages, and each is there', () => {
  const named = [...read('llms.txt').matchAll(/^- \[.+\]\((.+\.md)\)/gm)].map(([, file]) => file!);
  expect(named).toContain('graphs.md');
  expect(named.filter((file) => !existsSync(path.join(SITE, file)))).toEqual([]);
});

test('the search knows the headings of the pages', () => {
  const index = readdirSync(path.join(SITE, 'assets/chunks')).find((name) => name.startsWith('@localSearchIndex'));
  expect(read(`assets/chunks/${index}`)).toContain('Calls that a capture refuses');
});
