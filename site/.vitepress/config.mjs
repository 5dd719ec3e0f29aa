// The site of the documentation. `node site/build.mjs` writes its pages to build/site/pages before VitePress reads them.
import GithubSlugger from 'github-slugger';
import { defineConfig } from 'vitepress';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DECISIONS, description, forge, pageOf, root, SIDEBAR, SOURCES } from '../pages.mjs';
import { STAGE, stage, titleOf } from '../stage.mjs';

const base = process.env.SITE_BASE ?? '/';

const escapeHtml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Writes the pages again when their files change. */
const following = {
  name: 'follow-files',
  configureServer({ watcher }) {
    watcher.add([...SOURCES, 'README.md', 'site/pages'].map((file) => join(root, file)));
    watcher.on('change', (file) => file.endsWith('.md') && !file.startsWith(STAGE) && stage());
  },
};

const item = (name) => {
  const page = pageOf(name);
  return {
    text: titleOf(readFileSync(join(STAGE, page), 'utf8')),
    link: `/${page.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`,
  };
};
const generated = JSON.parse(readFileSync(join(STAGE, 'sidebars.json'), 'utf8'));
const main = SIDEBAR.map(({ text, items }) => ({ text, collapsed: false, items: items.map(item) }));

export default defineConfig({
  title: 'Millrace',
  description,
  lang: 'en',
  base,
  head: [['link', { rel: 'icon', href: `${base}icon.svg` }]],
  srcDir: '../build/site/pages',
  outDir: '../build/site/html',
  cacheDir: '../build/site/cache',
  srcExclude: ['public/**'],
  metaChunk: true,
  markdown: {
    // The colours of code take half of the build. The tests do without.
    ...(process.env.SITE_COLOURS === '0' && { highlight: (code) => `<pre v-pre><code>${escapeHtml(code)}</code></pre>` }),
    // The anchors of a forge.
    anchor: { slugify: (text) => new GithubSlugger().slug(text) },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  transformPageData(page) {
    if (page.frontmatter.source) page.filePath = page.frontmatter.source;
    else page.frontmatter.editLink = false;
  },
  vite: { plugins: [following] },
  themeConfig: {
    outline: [2, 3],
    // The pages of what was done and decided have every word of all others, and are seldom what a reader looks for.
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: { boostDocument: (id) => (/\/(changelog|gpu-runs|benchmarks|decisions\/|api\/)/.test(id) ? 0.2 : 1) },
        },
      },
    },
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Tour', link: '/tour' },
      { text: 'Reference', link: '/semantics' },
      { text: 'API', link: '/api/' },
      { text: 'Benchmarks', link: '/benchmarks' },
    ],
    sidebar: {
      ...generated,
      '/decisions/': [{ text: 'Decisions', items: DECISIONS.map(item) }],
      '/': main,
    },
    editLink: { pattern: `${forge}/edit/main/:path`, text: 'Edit this page' },
    socialLinks: [{ icon: 'github', link: forge }],
  },
});
