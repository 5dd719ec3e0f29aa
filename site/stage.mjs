// Writes the pages of the site to build/site/pages: the Markdown files of the repository with the links of the site, and what is generated.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { apiPages } from './api.mjs';
import { codePages, errorSections } from './errors.mjs';
import { withSiteLinks } from './links.mjs';
import { DECISIONS, description, pageOf, README_SECTIONS, README_TITLES, read, root, SIDEBAR, SOURCES } from './pages.mjs';

export const STAGE = join(root, 'build/site/pages');

/** Writes the file below STAGE, unless it is as it should be: the server of `--dev` sees what changed, and no more. */
function write(name, bytes) {
  const path = join(STAGE, name);
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}
const writeText = (name, text) => write(name, Buffer.from(text));

const frontMatter = (facts) =>
  `---\n${Object.entries(facts)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join('')}---\n\n`;
export const titleOf = (markdown) => /^# (.+)$/m.exec(markdown)?.[1]?.replaceAll('`', '');

/** Sections of README.md by their titles. */
function readmeSections() {
  const [, ...sections] = read('README.md').split(/^## /m);
  return new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), section.slice(section.indexOf('\n') + 1).trim()]));
}

/** The pages that README.md becomes. */
function readmePages() {
  const sections = readmeSections();
  const pageOfSection = (title) => (title in README_SECTIONS ? README_SECTIONS[title] : 'programs.md');
  return Object.entries(README_TITLES).map(([page, title]) => {
    const parts = [...sections.keys()].filter((section) => pageOfSection(section) === page);
    return [page, `# ${title}\n\n${parts.map((part, at) => `${at === 0 ? '' : `## ${part}\n\n`}${sections.get(part)}\n`).join('\n')}`];
  });
}

function decisionsIndex() {
  const rows = DECISIONS.slice(1).map((file) => `- [${titleOf(read(file))}](/${pageOf(file)})`);
  return `# Decisions\n\nWhat could have been made otherwise, and why it is as it is: one page each.\n\n${rows.join('\n')}\n`;
}

/** Writes all pages, and returns their texts by their paths. */
export async function stage() {
  const images = new Set();
  const pages = new Map();
  const add = (page, file, markdown) => pages.set(page, { file, markdown: file ? withSiteLinks(markdown, file, images) : markdown });

  for (const [page, markdown] of readmePages()) add(page, 'README.md', markdown);
  for (const file of SOURCES) add(pageOf(file), file, read(file));
  const errors = errorSections();
  add('errors.md', 'docs/errors.md', errors.head);
  for (const { name, text } of errors.sections) add(`errors/${name}.md`, 'docs/errors.md', text);
  // Their links are those of a file in docs, and they are no file: there is nothing to edit.
  const codes = await codePages();
  for (const { name, markdown } of codes) add(`errors/${name}.md`, undefined, withSiteLinks(markdown, 'docs/errors.md', images));
  add(
    'kernel-language.md',
    'docs/kernel-language.md',
    read('docs/kernel-language.md').replaceAll(/^\| (K\d{3}) \|/gm, '| [$1](/errors/$1.md) |'),
  );
  const link = (text) => ({ text, link: `/errors/${text}` });
  const errorItems = [
    { text: 'Errors', items: [{ text: 'All errors', link: '/errors' }, ...errors.sections.map(({ name }) => link(name))] },
    { text: 'Codes of CompileError', items: codes.map(({ name }) => link(name)) },
  ];
  add('decisions/index.md', undefined, decisionsIndex());
  // The first program of README.md, which the tests run.
  const hello = /^```ts\n.*?^```$/ms.exec(read('README.md'))[0];
  const api = await apiPages();
  for (const [page, { facts, markdown }] of api.pages) pages.set(page, { facts, markdown });
  for (const name of readdirSync(join(root, 'site/pages')))
    add(
      name,
      `site/pages/${name}`,
      read(`site/pages/${name}`).replace('<!-- hello -->', () => hello),
    );

  for (const [page, { file, markdown, facts = file === undefined ? {} : { source: file } }] of pages) {
    writeText(page, markdown.startsWith('---\n') ? markdown : frontMatter(facts) + markdown);
    writeText(join('public', page), markdown);
  }
  for (const image of images) write(join('public/files', image), readFileSync(join(root, image)));
  for (const name of readdirSync(join(root, 'site/public'))) write(join('public', name), readFileSync(join(root, 'site/public', name)));
  writeText('public/llms.txt', llmsText(pages));
  writeText('sidebars.json', JSON.stringify({ '/api/': api.sidebar, '/errors': errorItems }));
  return pages;
}

/** The first sentence below the title, as text. */
function aboutOf(markdown) {
  const [, paragraph] = /^# .+\n+(?!```|[|#><-])((?:.+\n)+)/m.exec(markdown) ?? [];
  const sentence = paragraph
    ?.replaceAll('\n', ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .match(/^.+?[.:](?= |$)/)?.[0];
  return sentence === undefined ? '' : `: ${sentence.replace(/:$/, '.')}`;
}

/** https://llmstxt.org: what there is, with the address of the text of each page, relative to this file. */
function llmsText(pages) {
  const link = (item) => {
    const { markdown } = pages.get(pageOf(item));
    return `- [${titleOf(markdown)}](${pageOf(item)})${aboutOf(markdown)}`;
  };
  const sections = SIDEBAR.map(({ text, items }) => `## ${text}\n\n${items.map(link).join('\n')}\n`);
  return `# Millrace\n\n> ${description}\n\n${sections.join('\n')}`;
}
