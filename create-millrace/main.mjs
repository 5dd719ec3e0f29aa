#!/usr/bin/env node
// npm create millrace FOLDER TEMPLATE: makes a project from a template.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const TEMPLATES = {
  service: 'answers requests over HTTP, in batches',
  pipeline: 'sends files through the device, several at a time',
  kernels: 'a library of functions for other programs',
};
const HELP = `Usage: npm create millrace FOLDER TEMPLATE

${Object.entries(TEMPLATES)
  .map(([name, what]) => `  ${name.padEnd(9)} ${what}`)
  .join('\n')}
`;
const here = dirname(fileURLToPath(import.meta.url));
const { version } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));

function refuse(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

const [folder, template, ...surplus] = process.argv.slice(2);
if (folder === undefined || folder === '--help' || template === undefined) {
  process.stdout.write(HELP);
  process.exit(folder === '--help' ? 0 : 1);
}
if (surplus.length > 0) refuse(`There is one folder and one template; ${surplus.join(' ')} is neither.`);
if (!Object.hasOwn(TEMPLATES, template)) refuse(`There is no template ${template}; there are ${Object.keys(TEMPLATES).join(', ')}.`);
const target = resolve(folder);
const name = basename(target);
if (!/^[a-z0-9][a-z0-9._-]{0,213}$/.test(name))
  refuse(`${name} cannot be the name of a package: small letters, digits, and . _ - behind the first.`);
if (existsSync(target) && readdirSync(target).length > 0) refuse(`The folder ${folder} is not empty.`);

mkdirSync(target, { recursive: true });
for (const from of ['common', template]) cpSync(join(here, 'templates', from), target, { recursive: true });
for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const file = join(entry.parentPath ?? entry.path, entry.name);
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replaceAll('{{name}}', name).replaceAll('{{version}}', version));
  if (entry.name.startsWith('_')) renameSync(file, join(dirname(file), `.${entry.name.slice(1)}`));
}
console.log(`${folder} is a ${template}. Now:\n\n  cd ${folder}\n  npm install\n  npm test\n`);
