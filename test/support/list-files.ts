// A reporter that writes which files a run will test, before it tests the first: scripts/count-tests.mjs misses those that are not in the report.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Reporter, TestSpecification } from 'vitest/node';

const REPORTS = 'build/reports';

// oxlint-disable-next-line import/no-default-export -- vitest asks for it
export default class ListFiles implements Reporter {
  onTestRunStart(specifications: readonly TestSpecification[]): void {
    const lines = specifications.map(({ project, moduleId }) => `[${project.name}] ${relative(process.cwd(), moduleId)}\n`);
    mkdirSync(REPORTS, { recursive: true });
    writeFileSync(join(REPORTS, 'test-files.txt'), lines.join(''));
  }
}
