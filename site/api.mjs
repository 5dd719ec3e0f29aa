// The reference of the API: TypeDoc reads the declarations that programs see (dist, of a build), and its text of each name is put on pages:
// classes and interfaces with methods have their own, and the others of an entry point share one for functions, one for types and one for errors.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, posix } from 'node:path';
import { outsideCode } from './links.mjs';
import { root } from './pages.mjs';

const RAW = join(root, 'build/site/api');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The entry points of the package: how programs import them, their declarations, and the folder of their pages. */
export const ENTRIES = Object.entries(exports)
  .filter(([, target]) => target.import !== undefined)
  .map(([name, target]) => {
    const declarations = target.import.types.replace(/^\.\//, '');
    return { name: posix.join('millrace', name), declarations, folder: name === '.' ? 'core' : name.slice(2) };
  });

/** A file of TypeDoc's, as `entry/kind/Name.md`. Its folder of an entry point is that of the declarations below dist. */
const rawFolder = ({ declarations }) => declarations.replace(/^dist\//, '').replace(/\/?index\.d\.ts$/, '') || 'index';

/** Runs TypeDoc, unless it has read the same declarations before. */
async function describe() {
  const declarations = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'));
  if (declarations.length === 0) throw new Error('The declarations in dist are missing: run npm run build.');
  const hash = createHash('sha256').update(readFileSync(import.meta.filename ?? new URL(import.meta.url)));
  for (const name of declarations.toSorted()) hash.update(name).update(readFileSync(join(root, 'dist', name)));
  const digest = hash.digest('hex');
  const mark = join(RAW, 'declarations.sha256');
  if (existsSync(mark) && readFileSync(mark, 'utf8') === digest) return;

  rmSync(RAW, { recursive: true, force: true });
  mkdirSync(RAW, { recursive: true });
  const tsconfig = join(RAW, 'tsconfig.json');
  const compilerOptions = { module: 'NodeNext', target: 'ES2022', lib: ['ES2023', 'ESNext.Disposable'], types: ['node'], strict: true };
  const files = ENTRIES.map((entry) => join(root, entry.declarations));
  writeFileSync(tsconfig, JSON.stringify({ compilerOptions: { ...compilerOptions, skipLibCheck: true, noEmit: true }, files }));
  const { Application } = await import('typedoc');
  const table = 'table';
  const app = await Application.bootstrapWithPlugins({
    ...{ entryPoints: files, tsconfig, plugin: ['typedoc-plugin-markdown'], out: RAW, logLevel: 'Error', skipErrorChecking: true },
    ...{ readme: 'none', router: 'member', entryFileName: 'index.md', hideBreadcrumbs: true, hidePageHeader: true, disableSources: true },
    ...{ excludeInternal: true, excludePrivate: true, excludeProtected: true, excludeExternals: true, cleanOutputDir: false },
    ...{ useCodeBlocks: true, parametersFormat: table, interfacePropertiesFormat: table, classPropertiesFormat: table },
    ...{ typeDeclarationFormat: table, tableColumnSettings: { hideInherited: true, hideModifiers: true, hideOverrides: true } },
  });
  const project = await app.convert();
  if (project === undefined) throw new Error('TypeDoc did not read the declarations.');
  await app.generateOutputs(project);
  if (app.logger.hasErrors()) throw new Error('TypeDoc reported errors.');
  writeFileSync(mark, digest);
}

const isError = (kind, name) => kind === 'classes' && name.endsWith('Error');

/** The page of a name, and its heading there if the page has others. */
function placeOf(folder, kind, name, text) {
  const page = (shared) => ({ page: `api/${folder}/${shared}.md`, heading: name.toLowerCase() });
  if (isError(kind, name)) return page('errors');
  if (kind === 'functions' || kind === 'variables') return page('functions');
  if (/^## (?:Methods|Accessors|Constructors)$/m.test(text)) return { page: `api/${folder}/${name}.md`, heading: undefined };
  return page('types');
}

/** What TypeDoc wrote of one name, without what repeats itself. */
function tidy(text, kind, name) {
  const short = text
    .replace(/^# .*\n+/, '')
    .replaceAll(/^#{3,6} (?:Inherited from|Overrides|Implementation of)\n\n.+\n*/gm, '')
    // The parts of a getter are a level deeper, below a heading that says no more than the one above it.
    .replaceAll(/^#### Get Signature\n[\s\S]*?(?=^#{2,3} |$(?![\s\S]))/gm, (getter) =>
      getter.replace(/.*\n+/, '').replaceAll(/^##### /gm, '#### '),
    )
    .replaceAll(/^\*\*\*\n+/gm, '')
    .replaceAll(/^### \\\[hasInstance\\\]\(\)\n[\s\S]*?(?=^#{2,3} |$(?![\s\S]))/gm, '')
    // A heading whose parts are gone.
    .replaceAll(/^## Methods\n+(?=## |$(?![\s\S]))/gm, '');
  return isError(kind, name) ? short.replace(/^## Constructors\n[\s\S]*?(?=^## |$(?![\s\S]))/m, '') : short;
}

/** The first sentence of what TypeDoc wrote: the first paragraph is no heading, signature, table or quotation. */
function firstSentence(text) {
  const blocks = text.replaceAll(/^```[\s\S]*?^```$/gm, '').split(/\n{2,}/);
  const prose = blocks.find((block) => /^[^#|>\n]/.test(block.trim())) ?? '';
  return prose
    .trim()
    .replaceAll('\n', ' ')
    .replace(/([.:])\s.*$/, '$1')
    .replace(/[.:]$/, '');
}

const SHARED = { functions: 'Functions and constants', types: 'Types and options', errors: 'Errors' };

/** The pages of the reference by their paths, in the order of the sidebar, and the sidebar. */
export async function apiPages() {
  await describe();
  const names = [];
  for (const entry of ENTRIES) {
    const raw = rawFolder(entry);
    for (const kind of ['classes', 'interfaces', 'functions', 'variables', 'type-aliases']) {
      const folder = join(RAW, raw, kind);
      for (const file of existsSync(folder) ? readdirSync(folder).toSorted() : []) {
        const text = readFileSync(join(folder, file), 'utf8');
        const name = basename(file, '.md');
        names.push({ entry, kind, name, raw: `${raw}/${kind}/${file}`, text, ...placeOf(entry.folder, kind, name, text) });
      }
    }
  }
  const places = new Map(names.map((one) => [one.raw, one]));

  const linked = (text, { raw, heading }) =>
    outsideCode(text, (part) =>
      part.replaceAll(/(?<!\\)<(?=[a-zA-Z])(?!a id=)/g, '&lt;').replaceAll(/\]\(([^)\s]+)\)/g, (whole, link) => {
        if (/^[a-z]+:/.test(link)) return whole;
        const [path, anchor] = link.split('#');
        const target = path === '' ? places.get(raw) : places.get(posix.join(posix.dirname(raw), path));
        if (target === undefined) return whole;
        const hash = target.heading ?? anchor;
        return `](${path === '' && heading === undefined ? '' : `/${target.page}`}${hash === undefined ? '' : `#${hash}`})`;
      }),
    );

  const pages = new Map();
  const sidebar = [{ text: 'API', items: [{ text: 'Entry points', link: '/api/' }] }];
  for (const entry of ENTRIES) {
    const own = names.filter((one) => one.entry === entry);
    const items = [];
    const index = [`# ${entry.name}\n\n`];
    const put = (page, title, facts, body) => {
      pages.set(page, { facts, markdown: `# ${title}\n\n${body}` });
      items.push({ text: title, link: `/${page.replace(/\.md$/, '')}` });
    };
    const rowOf = (one) => {
      const address = `/${one.page}${one.heading === undefined ? '' : `#${one.heading}`}`;
      return `| [\`${one.name}\`](${address}) | ${linked(firstSentence(one.text), { ...one, heading: '' }).replaceAll('|', '\\|')} |\n`;
    };
    const table = (title, rows) => rows.length > 0 && index.push(`## ${title}\n\n| | |\n| --- | --- |\n${rows.map(rowOf).join('')}\n`);

    const alone = own.filter(({ heading }) => heading === undefined);
    table('Classes and interfaces', alone);
    for (const one of alone) put(one.page, one.name, { outline: [2, 3] }, linked(tidy(one.text, one.kind, one.name), one));
    for (const [shared, title] of Object.entries(SHARED)) {
      const page = `api/${entry.folder}/${shared}.md`;
      const parts = own.filter((one) => one.page === page).toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
      table(title, parts);
      const body = parts.map((one) => {
        const text = linked(tidy(one.text, one.kind, one.name), one)
          .replaceAll(/^#(#+ )/gm, '##$1')
          // Rows of a table are found by the name that they belong to.
          .replaceAll(/<a id="([^"]+)"><\/a> /g, '');
        return `## ${one.name}\n\n${text}`;
      });
      if (parts.length > 0) put(page, title, { outline: 2 }, body.join('\n'));
    }
    pages.set(`api/${entry.folder}/index.md`, { facts: { outline: 2 }, markdown: index.join('') });
    sidebar.push({ text: entry.name, collapsed: entry.folder !== 'core', link: `/api/${entry.folder}/`, items });
  }
  const list = ENTRIES.map(
    ({ name, folder }) => `| [\`${name}\`](/api/${folder}/index.md) | ${names.filter((one) => one.entry.name === name).length} |\n`,
  );
  pages.set('api/index.md', {
    facts: {},
    markdown: `# API\n\nEvery name that programs import, from the declarations of the package.\n\n| entry point | names |\n| --- | --- |\n${list.join('')}`,
  });
  return { pages, sidebar };
}
