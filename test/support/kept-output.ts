// What a compiler made, or took, is kept by content in the store of kept-compiler.ts: it is neither made nor asked again, whichever file asks.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { KEPT } from './kept-compiler.js';

const FOLDER = path.join(KEPT, 'files');

/** A file that `make` writes to the path that it gets, unless there is one for these facts. */
export function keptFile(facts: readonly string[], make: (file: string) => void): string {
  const file = fileOf(facts);
  if (existsSync(file)) return file;
  mkdirSync(FOLDER, { recursive: true });
  const fresh = `${file}.${process.pid}`;
  make(fresh);
  renameSync(fresh, file);
  return file;
}

/** What has not passed `passes` yet with these facts. All of it is noted when it returns. */
export function passOnce<T>(items: readonly T[], factsOf: (item: T) => readonly string[], passes: (fresh: readonly T[]) => void): void {
  const fresh = items.filter((item) => !existsSync(fileOf(factsOf(item))));
  if (fresh.length > 0) passes(fresh);
  for (const item of fresh) keptFile(factsOf(item), (file) => writeFileSync(file, ''));
}

/** The texts of the files of a folder and of its folders. */
export function textsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => path.join(folder, name))
    .flatMap((file) => (statSync(file).isFile() ? [`${path.relative(folder, file)}\n${readFileSync(file, 'latin1')}`] : []));
}

function fileOf(facts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const fact of facts) hash.update(fact).update('\0');
  return path.join(FOLDER, hash.digest('hex').slice(0, 32));
}
