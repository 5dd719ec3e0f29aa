// The documentation as a site: it is built once, and its links, its search and the texts beside the pages are looked at.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';

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

test('every link of every page leads to a page, a file or a heading', () => {
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

test('llms.txt names the pages, and each is there', () => {
  const named = [...read('llms.txt').matchAll(/^- \[.+\]\((.+\.md)\)/gm)].map(([, file]) => file!);
  expect(named).toContain('graphs.md');
  expect(named.filter((file) => !existsSync(path.join(SITE, file)))).toEqual([]);
});

test('the search knows the headings of the pages', () => {
  const index = readdirSync(path.join(SITE, 'assets/chunks')).find((name) => name.startsWith('@localSearchIndex'));
  expect(read(`assets/chunks/${index}`)).toContain('Calls that a capture refuses');
});
