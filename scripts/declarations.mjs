// Joins the declarations that tsc wrote into few files for the package: `api.d.ts` has every declaration that the entries need, once, and each entry
// exports its own names from there.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

/** Fields of nodes that hold a name of a member, and no reference: of a property, of a method, and behind a point. */
const MEMBER_NAMES = {
  key: (node) => !node.computed,
  property: (node) => !node.computed,
  right: (node) => node.type === 'TSQualifiedName',
};
const EXTERNAL = /^[^.]/;

/** Calls `take` for each identifier of a node that refers to a declaration or is one. */
function identifiers(node, take) {
  if (Array.isArray(node)) for (const one of node) identifiers(one, take);
  if (node === null || typeof node !== 'object') return;
  if (node.type === 'Identifier') take(node);
  for (const [field, value] of Object.entries(node)) if (!MEMBER_NAMES[field]?.(node)) identifiers(value, take);
}

/**
 * A module's declarations by name (functions have several), and what its other names stand for: `[module, name]`. `added`: what it declares
 * for other modules. `all`: the modules all of whose names it exports.
 */
function readModule(file) {
  const text = readFileSync(file, 'utf8');
  const module = { declared: new Map(), imported: new Map(), exported: new Map(), added: [], needs: new Set(), all: [] };
  const at = (source) => (EXTERNAL.test(source) ? source : join(dirname(file), source.replace(/\.js$/, '.d.ts')));
  let end = 0;
  for (const node of parseAst(text, { lang: 'dts' }).body) {
    const before = text.slice(end, node.start);
    end = node.end;
    if (node.source && !EXTERNAL.test(node.source.value)) module.needs.add(at(node.source.value));
    if (node.type === 'TSModuleDeclaration' && node.id.type === 'Literal') {
      for (const inner of node.body.body) module.added.push([at(node.id.value), inner.declaration ?? inner, { file, text }]);
      continue;
    }
    if (node.type === 'ExportAllDeclaration' && node.exported === null) {
      module.all.push(at(node.source.value));
      continue;
    }
    if (node.type === 'ImportDeclaration') {
      for (const { type, local, imported } of node.specifiers) {
        if (type !== 'ImportSpecifier')
          throw new Error(`${file}: imports of names alone can be joined, not ${text.slice(node.start, node.end)}`);
        module.imported.set(local.name, [at(node.source.value), imported.name]);
      }
      continue;
    }
    for (const { local, exported } of node.specifiers ?? []) {
      module.exported.set(exported.name, node.source ? [at(node.source.value), local.name] : [file, local.name]);
    }
    const declaration = node.type === 'ExportNamedDeclaration' ? node.declaration : node;
    if (!declaration) continue;
    const names = declaration.declarations?.map(({ id }) => id.name) ?? [declaration.id?.name];
    if (names.length !== 1 || names[0] === undefined) throw new Error(`${file}: cannot join ${text.slice(node.start, node.end)}`);
    const comment = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(before)?.[0] ?? '';
    const known = module.declared.get(names[0]) ?? [];
    module.declared.set(names[0], [...known, { node: declaration, comment, file, text }]);
    if (node !== declaration) module.exported.set(names[0], [file, names[0]]);
  }
  return module;
}

/** `entries`: files of declarations in `folder`. Gives the text of each file of the package by its path in `folder`. */
export function joinDeclarations(folder, entries) {
  const modules = new Map();
  const moduleAt = (file) => {
    if (modules.has(file)) return modules.get(file);
    const module = readModule(file);
    modules.set(file, module);
    for (const needed of module.needs) moduleAt(needed);
    for (const from of module.all)
      for (const name of moduleAt(from).exported.keys()) if (!module.exported.has(name)) module.exported.set(name, [from, name]);
    return module;
  };
  /** The declaration that a name of a module stands for; undefined for a global one. */
  const resolve = (file, name, isExport = false) => {
    if (EXTERNAL.test(file) && !file.startsWith(folder)) return { file, name };
    const module = moduleAt(file);
    if (!isExport && module.declared.has(name)) return { file, name };
    const next = isExport ? module.exported.get(name) : module.imported.get(name);
    if (next === undefined) {
      if (isExport) throw new Error(`${file} exports no ${name}`);
      return undefined;
    }
    return resolve(...next, next[0] !== file);
  };

  const wanted = entries.map((entry) => {
    const file = join(folder, entry);
    return [entry, [...moduleAt(file).exported.keys()].map((name) => ({ ...resolve(file, name, true), as: name }))];
  });
  for (const { added } of modules.values()) {
    for (const [file, node, from] of added)
      moduleAt(file)
        .declared.get(node.id.name)
        .push({ node, comment: '', ...from });
  }
  // Public names are as they are; others get a number if they meet.
  const [chosen, taken, order] = [new Map(), new Set(), []];
  const choose = ({ file, name }, wish = name) => {
    const key = `${file}\0${name}`;
    if (chosen.has(key)) return chosen.get(key);
    let free = wish;
    for (let n = 1; taken.has(free); n++) free = `${wish}$${n}`;
    taken.add(free);
    chosen.set(key, free);
    order.push({ file, name });
    return free;
  };
  for (const [, names] of wanted) for (const target of names) choose(target, target.as);

  const externals = new Map();
  let joined = '';
  for (let next = 0; next < order.length; next++) {
    const { file, name } = order[next];
    const own = chosen.get(`${file}\0${name}`);
    if (!file.startsWith(folder)) {
      externals.set(file, [...(externals.get(file) ?? []), own === name ? name : `${name} as ${own}`]);
      continue;
    }
    for (const { node, comment, file: place, text: source } of moduleAt(file).declared.get(name)) {
      const edits = new Map();
      identifiers(node, ({ name: used, start }) => {
        const target = resolve(place, used);
        const called = target && choose(target);
        if (called !== undefined && called !== used) edits.set(start, [used, called]);
      });
      let text = '';
      let at = node.start;
      for (const [start, [used, called]] of [...edits].toSorted(([a], [b]) => a - b)) {
        text += source.slice(at, start) + called;
        at = start + used.length;
      }
      joined += `${comment}export ${text}${source.slice(at, node.end)}\n`;
    }
  }
  const imports = [...externals].map(([from, names]) => `import type { ${names.join(', ')} } from '${from}';\n`).join('');
  const files = wanted.map(([entry, names]) => {
    const exported = names.map((target) => {
      const own = chosen.get(`${target.file}\0${target.name}`);
      return own === target.as ? own : `${own} as ${target.as}`;
    });
    const api = `${'../'.repeat(entry.split('/').length - 1) || './'}api.js`;
    return [entry, `/// <reference types="node" />\nexport { ${exported.join(', ')} } from '${api}';\n`];
  });
  return new Map([['api.d.ts', `/// <reference types="node" />\n${imports}${joined}export {};\n`], ...files]);
}
