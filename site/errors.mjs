// The pages of errors: one for each section of docs/errors.md, and one for each code of a CompileError, with a program that has the error, what the
// library says about it, and the same program without it.
import { transformSync } from 'esbuild';
import { COMPILE_EXAMPLES, IN_WORDS, launched, ON_DEVICE } from './compile-examples.mjs';
import { read } from './pages.mjs';

/** The catalogue: what each code is about, its remedy, and the section that has more. */
export const CODES = new Map(
  [...read('docs/kernel-language.md').matchAll(/^\| (K\d{3}) \| (.+) \| (.+) \| \[(.+)\]\((.+)\) \|$/gm)].map(
    ([, code, about, remedy, title, link]) => [code, { about, remedy, title, link }],
  ),
);

/** The sections of docs/errors.md: the first is the page's head. */
export function errorSections() {
  const [head, ...sections] = read('docs/errors.md').split(/^## /m);
  return { head, sections: sections.map((text) => ({ name: text.slice(0, text.indexOf('\n')), text: `# ${text}` })) };
}

/** What the library says when it runs the text, without the place of the text in this program. */
function messageOf(library, text) {
  const names = Object.keys(library);
  try {
    new Function(...names, transformSync(text, { loader: 'ts' }).code)(...names.map((name) => library[name]));
  } catch (error) {
    return error.message.replaceAll(/^ {2}in (?:kernel|helper) .*\n/gm, '').replaceAll(/^ *\d* +\|.*\n?/gm, '');
  }
  throw new Error(`The library accepts what it should refuse:\n${text}`);
}

const sentence = (text) => `${text[0] === '`' ? text : text[0].toUpperCase() + text.slice(1)}.`;
const code = (text, language = 'ts') => `\`\`\`${language}\n${text}\n\`\`\`\n\n`;

/** The pages of the codes by their names. Links in them are those of docs/kernel-language.md. */
export async function codePages() {
  const library = await import('../dist/index.js');
  return [...CODES].map(([name, { about, remedy, title, link }]) => {
    const shown = COMPILE_EXAMPLES[name] ?? ON_DEVICE[name];
    if (shown === undefined && IN_WORDS[name] === undefined) throw new Error(`site/compile-examples.mjs has nothing about ${name}.`);
    const parts = [`# ${name}\n\n${sentence(about)}\n\n**Remedy.** ${sentence(remedy)}\n\n`];
    if (shown !== undefined) {
      parts.push(`## Refused\n\n${code(shown[0])}`);
      if (name in COMPILE_EXAMPLES) parts.push(code(messageOf(library, shown[0]).trim(), 'text'));
      else parts.push('The call returns; `device.compile` and the launches of the kernel reject.\n\n');
      parts.push(`## Accepted\n\n${code(launched(shown))}`);
    } else parts.push(`${IN_WORDS[name]}\n\n`);
    const target = link.startsWith('#') ? `kernel-language.md${link}` : link;
    parts.push(`## More\n\n- [${title}](${target})\n- [All codes](kernel-language.md#codes), [CompileError](errors.md#compileerror)\n`);
    return { name, markdown: parts.join('') };
  });
}
