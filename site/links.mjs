// Markdown that is written for the files of the repository, as a page of the site: its links lead to pages, and to the forge where a file is none.
import { existsSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import GithubSlugger from 'github-slugger';
import { errorSections } from './errors.mjs';
import { forge, pageOf, README_SECTIONS, root, SOURCES } from './pages.mjs';

const pages = new Set(SOURCES);
const IMAGE = /\.(?:png|jpe?g|svg|webp)$/;

/** Calls `change` for each part of the text that is neither a block of code nor a code span. */
export function outsideCode(markdown, change) {
  const parts = markdown.split(/(^(?:```|~~~)[^\n]*\n[\s\S]*?^(?:```|~~~)[ \t]*$|(`+)(?!`)[\s\S]*?(?<!`)\2(?!`))/m);
  // Of each match, split() gives the match and the backticks: code is at 1, 4, 7 and so on.
  return parts.map((part, at) => (at % 3 === 0 ? change(part) : at % 3 === 1 ? part : '')).join('');
}

/** The page that has this section of README.md. */
function pageOfReadme(anchor) {
  for (const [title, page] of Object.entries(README_SECTIONS)) {
    const slugger = new GithubSlugger();
    if (slugger.slug(title) === anchor) return page && `/${page}#${anchor}`;
  }
  return anchor === undefined ? '/index.md' : `/programs.md#${anchor}`;
}

/** The page that has this section of docs/errors.md. */
function pageOfError(anchor) {
  const found = errorSections().sections.find(({ name }) => name.toLowerCase() === anchor);
  if (found === undefined) throw new Error(`docs/errors.md has no section #${anchor}.`);
  return `/errors/${found.name}.md`;
}

/**
 * The same text with the links of a page. `images` gets the images that the page shows, as paths in the repository.
 */
export function withSiteLinks(markdown, file, images) {
  const targetOf = (link) => {
    if (file === 'docs/errors.md' && link.startsWith('#')) return pageOfError(link.slice(1));
    if (/^(?:[a-z]+:|#|\/)/.test(link)) return link;
    const [path, anchor] = link.split('#');
    const target = posix.normalize(posix.join(dirname(file), path)).replace(/\/$/, '');
    const hash = anchor === undefined ? '' : `#${anchor}`;
    if (target === 'README.md' || target === '.') return pageOfReadme(anchor);
    if (target === 'docs/decisions') return '/decisions/index.md';
    if (target === 'docs/errors.md' && anchor !== undefined) return pageOfError(anchor);
    if (pages.has(target)) return `/${pageOf(target)}${hash}`;
    if (pages.has(`${target}/README.md`)) return `/${pageOf(`${target}/README.md`)}${hash}`;
    if (!existsSync(join(root, target))) throw new Error(`${file} links to ${link}, which does not exist.`);
    if (IMAGE.test(target)) {
      images.add(target);
      return `/files/${target}`;
    }
    return `${forge}/${statSync(join(root, target)).isDirectory() ? 'tree' : 'blob'}/main/${target}${hash}`;
  };
  return outsideCode(markdown, (text) =>
    text.replaceAll(/(\]\()([^)\s]+)(\))/g, (_, open, link, close) => `${open}${targetOf(link)}${close}`).replaceAll('{{', '&#123;&#123;'),
  );
}
