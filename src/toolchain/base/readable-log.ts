// Makes a compiler's output readable for users. The CPU device compiles rewritten source with headers of this package, so its compiler names
// types and functions that no user has written, and quotes lines of the headers.
import { HEADER_DIRECTORY, UNPACKED_HEADERS, WRITTEN_HEADERS } from './kernel-headers.js';
import { SHIM_DIRECTORY } from './package-and-cpu-identity.js';

/** A line, and the indented or quoted lines that belong to it. */
interface Entry {
  readonly head: string;
  readonly rest: string[];
}

/** What this package calls its own begins so, in C++ and in macros. */
const INTERNAL = /\b(?:mr_|MR_|Mr[A-Z])\w*/;
const FOLDERS_OF_LIBRARY = [SHIM_DIRECTORY, HEADER_DIRECTORY, WRITTEN_HEADERS];

/** Compilers warn only about what this package adds. */
const WARNING = /:\s+warning: /;

/** Names that stand for one of CUDA's or of C++. */
const SPELLINGS: readonly (readonly [internal: RegExp, shown: string])[] = [
  // The indices that kernels are passed.
  [/\((?:mr_index3(?:, )?){3,4}(?:mr_(?:block|row)\b(?:, )?)?/g, '('],
  [/\bmr_(?:whole_block|rows_of_block|rows_of_grid)\b/g, 'void'],
  [/\bmr_index3\b/g, 'uint3'],
  [/\bmr_(?:index|product)\b/g, 'unsigned int'],
  [/'[^'\n]*\bmr_\w[^'\n]*' \{aka '([^'\n]*)'\}/g, "'$1'"],
  [/^\S*\bld(?:\.\w+)?: \S+\.o: (?=in function )/, ''],
  [/^\S+:\(\.\w+\+0x[0-9a-f]+\): (?=undefined reference)/, ''],
  [/`mr_entry_(\w+)'/g, "`$1'"],
];

/** Without the entries that only speak of this package, and with the names that users know. Positions stay. */
export function readableLog(log: string): string {
  if (!INTERNAL.test(log) && ![...FOLDERS_OF_LIBRARY, UNPACKED_HEADERS].some((folder) => log.includes(folder))) return log;
  const entries = entriesOf(log).flatMap(({ head, rest }): Entry[] => {
    const shown = withKnownNames(head);
    if (isAbout(shown) || (INTERNAL.test(head) && WARNING.test(head))) return [];
    return [{ head: shown, rest: rest.some((line) => INTERNAL.test(line)) ? [] : rest }];
  });
  // Compilers report errors in headers as consequences of one in the source, or in the name of a kernel.
  const isOfName = entries.some(({ head }) => isError(head) && head.startsWith('exports:'));
  const own = entries.filter(({ head }) => {
    if (isOfLibrary(head)) return !isOfName && !INTERNAL.test(head);
    return !(head.startsWith('exports:') && INTERNAL.test(head));
  });
  const kept = own.some(({ head }) => isError(head)) ? own : entries;
  return kept.flatMap(({ head, rest }) => [head.replace(/\bmr_(?=\w)/g, ''), ...rest]).join('\n');
}

function entriesOf(log: string): Entry[] {
  const found: Entry[] = [];
  for (const line of log.split('\n')) {
    const last = found.at(-1);
    if (last && /^(?:\s+\S|\s*\d*\s*\|)/.test(line)) last.rest.push(line);
    else found.push({ head: line, rest: [] });
  }
  return found;
}

function withKnownNames(line: string): string {
  let shown = line;
  for (const [internal, known] of SPELLINGS) shown = shown.replace(internal, known);
  return shown;
}

/** Whether an entry that is no error tells only of this package. */
function isAbout(head: string): boolean {
  if (head.startsWith('In file included from ')) return true;
  return !isError(head) && (isOfLibrary(head) || INTERNAL.test(head));
}

function isError(head: string): boolean {
  return /(?:^|\s)(?:fatal |catastrophic )?error(?: #[\w-]+)?: |\bundefined reference to\b/.test(head);
}

function isOfLibrary(head: string): boolean {
  return FOLDERS_OF_LIBRARY.some((folder) => head.startsWith(folder)) || new RegExp(`^[^:]*/${UNPACKED_HEADERS}/`).test(head);
}
