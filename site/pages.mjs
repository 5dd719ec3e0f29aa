// Which file of the repository is which page of the site, and where the page stands in the sidebar.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const read = (file) => readFileSync(posix.join(root, file), 'utf8');

export const { description, repository, homepage } = JSON.parse(read('package.json'));
/** The repository on its forge: files that are no pages are there. */
export const forge = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

const decisions = readdirSync(posix.join(root, 'docs/decisions')).filter((name) => name.endsWith('.md'));
const applications = ['photos', 'training', 'service', 'search', 'simulation', 'parallel', 'fleet', 'faults', 'telemetry'];
const programs = ['concurrency', 'reactive', 'kernels', 'dynamic', 'cuda'];
const folder = (name) => `examples/${name}/README.md`;

/** The sections of README.md: each is a page of its own, or part of one; those that are not named here are in programs.md. `README.md` itself has no page; links to it lead to the home page. */
export const README_SECTIONS = {
  Install: 'install.md',
  'Two commands of a clone': 'install.md',
  Hello: 'programs.md',
  'What blocks, what copies': 'what-blocks.md',
  // A list of pages, as the sidebar is.
  More: undefined,
};
export const README_TITLES = { 'install.md': 'Install', 'programs.md': 'Programs', 'what-blocks.md': 'What blocks, what copies' };

/** The sidebar, by what a reader needs. A string is a file of the repository or a page of the site. */
export const SIDEBAR = [
  { text: 'Start', items: ['install.md', 'docs/start.md', 'programs.md', 'what-blocks.md'] },
  { text: 'Tour', items: ['docs/tour.md', 'docs/concepts.md'] },
  { text: 'Coming from', items: ['docs/coming-from.md', ...['cupy', 'pytorch', 'warp'].map((name) => `docs/coming-from/${name}.md`)] },
  {
    text: 'Guides',
    items: [
      ...['reactive', 'graphs', 'operations', 'scale', 'timelines', 'observability', 'ends', 'performance', 'cuda-code', 'textures'],
      ...['bundlers', 'testing'],
    ].map((name) => `docs/${name}.md`),
  },
  { text: 'Applications', items: applications.map(folder) },
  { text: 'Programs to read', items: programs.map(folder) },
  {
    text: 'Reference',
    items: ['api/index.md', 'docs/kernel-language.md', 'docs/errors.md', 'docs/semantics.md', 'docs/cli.md', 'docs/environment.md'],
  },
  {
    text: 'How it works',
    items: ['docs/architecture.md', 'docs/protocol.md', 'docs/reliability.md', 'decisions/index.md'],
  },
  { text: 'Benchmarks', items: ['docs/benchmarks.md', 'docs/gpu-runs.md'] },
  { text: 'Project', items: ['CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'] },
];

// A file that no section names is in the last one of its folder.
const named = new Set(SIDEBAR.flatMap(({ items }) => items));
const found = (where, ending) =>
  readdirSync(posix.join(root, where))
    .map((name) => `${where}/${name}${ending}`)
    .filter((file) => file.endsWith('.md') && existsSync(posix.join(root, file)) && !named.has(file));
SIDEBAR.find(({ text }) => text === 'Guides').items.push(...found('docs', ''), ...found('docs/coming-from', ''));
SIDEBAR.find(({ text }) => text === 'Applications').items.push(...found('examples', '/README.md'));

/** The sidebar of the decisions. */
export const DECISIONS = ['decisions/index.md', ...decisions.map((name) => `docs/decisions/${name}`)];

/** Files that other pages link to, and that no sidebar has. */
const UNLISTED = ['examples/photos/images/README.md', 'examples/training/data/README.md'];

/** Every Markdown file that is a page by itself. */
export const SOURCES = [...SIDEBAR.flatMap(({ items }) => items), ...DECISIONS, ...UNLISTED].filter((item) =>
  /^(docs|examples)\/|^[A-Z]+\.md$/.test(item),
);

/** The page of a file: docs/graphs.md is graphs.md, examples/photos/README.md is examples/photos.md. */
export function pageOf(item) {
  if (!/^(docs|examples)\/|^[A-Z]+\.md$/.test(item)) return item;
  return item
    .replace(/^docs\//, '')
    .replace(/\/README\.md$/, '.md')
    .replace(/^[A-Z]+\.md$/, (name) => name.toLowerCase());
}
