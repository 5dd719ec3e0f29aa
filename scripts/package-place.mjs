// Part of the bundle of the library: the URL of the package's folder `dist`. Files that are no code of the bundle lie there: workers and headers, and
// packages are found from there. A bundler may have put the code of the library into a program, in any format; the files are then in the installed package.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/** The build writes it into the folder. */
const MARK = 'package-identity';

/** Electron reads packages from an archive. Compilers and loaders do not, and find the files that were unpacked beside it. */
function outside(path) {
  const unpacked = path.replace(/\.asar(?=\/)/, '.asar.unpacked');
  return existsSync(unpacked) ? unpacked : path;
}

function find() {
  const here = typeof __filename === 'string' ? outside(__filename) : undefined;
  if (here !== undefined) {
    const code = pathToFileURL(here).href;
    // Entries of the package are in folders of it.
    const beside = ['./', '../'].map((path) => new URL(path, code)).find((folder) => existsSync(new URL(MARK, folder)));
    if (beside !== undefined) return beside.href;
  }
  for (const from of [here, process.argv[1], `${process.cwd()}/index.js`]) {
    try {
      if (from) return new URL('dist/', pathToFileURL(outside(createRequire(from).resolve('millrace/package.json')))).href;
    } catch {
      // It is not installed there.
    }
  }
  // Whoever needs a file reports that it is not there.
  return pathToFileURL(`${process.cwd()}/`).href;
}

export const DIST_URL = find();
