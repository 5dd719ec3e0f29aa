// Looks at the pages of the built site: links that lead nowhere (to a page, a file, or a heading that does not exist), and headings that skip a level.
// Prints them, and fails if there is one.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { root } from './pages.mjs';

const OUT = join(root, 'build/site/html');
const base = (process.env.SITE_BASE ?? '/').replace(/\/$/, '');
const pages = readdirSync(OUT, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html') && name !== '404.html');
const unescape = (text) => text.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"');

const ids = new Map();
const links = [];
const broken = new Set();
for (const page of pages) {
  const html = readFileSync(join(OUT, page), 'utf8');
  ids.set(page, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => unescape(id))));
  const levels = [...html.matchAll(/<h([1-6])[ >]/g)].map(([, level]) => Number(level));
  // Some headings belong to the frame of the page: its navigation has hidden ones of the second level before the first.
  const own = levels.slice(levels.indexOf(1));
  for (const [at, level] of own.entries())
    if (level > (own[at - 1] ?? 0) + 1) broken.add(`${page}: heading ${at + 1} skips from level ${own[at - 1]} to ${level}`);
  for (const [, link] of html.matchAll(/<(?:a|img|link|script)\s[^>]*?(?:href|src)="([^"]*)"/g)) links.push({ page, link: unescape(link) });
}

let checked = 0;
for (const { page, link } of links) {
  if (/^[a-z]+:/.test(link)) continue;
  checked++;
  const [path, hash] = link.split('#');
  const target =
    path === '' ? `/${page}` : path.startsWith(`${base}/`) ? path.slice(base.length) : posix.join('/', posix.dirname(page), path);
  const file = target.endsWith('/') ? `${target.slice(1)}index.html` : target.slice(1);
  if (!existsSync(join(OUT, file))) broken.add(`${page}: ${link}: there is no ${file}`);
  else if (hash && ids.has(file) && !ids.get(file).has(decodeURIComponent(hash)))
    broken.add(`${page}: ${link}: ${file} has no such heading`);
}
console.log([...broken].join('\n'));
console.log(`${pages.length} pages, ${checked} links, ${broken.size} of them broken`);
process.exitCode = broken.size === 0 && checked > pages.length ? 0 : 1;
