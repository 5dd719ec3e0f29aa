// Runs the lessons of this folder, or the ones that are named, one line a kernel and form. See README.md beside this file.
import { parseArgs } from 'node:util';
import { LESSONS } from './catalog.js';
import { OUT, perform } from './lesson.js';

const HELP = `node main.js [--device NAME] [--out FOLDER] [LESSON]...
  --device NAME  auto, cpu, cuda, cuda:1. Default: auto, a GPU if there is one.
  --out FOLDER   where the picture goes (default: ${OUT})
  LESSON         ${LESSONS.map(({ name }) => name).join(', ')}
`;

async function main(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { device: { type: 'string' }, out: { type: 'string' }, help: { type: 'boolean' } },
  });
  const unknown = positionals.filter((name) => LESSONS.every((lesson) => lesson.name !== name));
  if (values.help === true || unknown.length > 0) {
    process.stdout.write(unknown.length > 0 ? `There is no lesson ${unknown.join(', ')}.\n${HELP}` : HELP);
    process.exitCode = unknown.length > 0 ? 1 : 0;
    return;
  }
  const wanted = LESSONS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  await perform(
    wanted.map(({ run }) => run),
    values.device,
    values.out,
  );
}

await main(process.argv.slice(2));
