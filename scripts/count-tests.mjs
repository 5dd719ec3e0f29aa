// Adds up the reports of a test run and ends with the line "N passed, N failed". A report that is missing, or that holds
// no test, counts as a failure: something did not run.
//
//   node scripts/count-tests.mjs <folder of reports> <more passed> <more failed>
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, morePassed, moreFailed] = process.argv.slice(2);

const readers = {
  'vitest.json': (text) => {
    const report = JSON.parse(text);
    // A file that could not be loaded fails without a test in it.
    const broken = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
    return { passed: report.numPassedTests, failed: report.numFailedTests + broken, skipped: report.numPendingTests };
  },
  // One entry a test program, which says itself how many cases it had; one that died before that counts as one failure.
  'native.xml': (text) => {
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const [entry] of text.matchAll(/<testcase[\s\S]*?<\/testcase>/g)) {
      const cases = /(\d+) passed, (\d+) failed/.exec(entry);
      const hasFailed = !/status="run"/.test(entry);
      counts.passed += Number(cases?.[1] ?? (hasFailed ? 0 : 1));
      counts.failed += Math.max(Number(cases?.[2] ?? 0), hasFailed ? 1 : 0);
    }
    return counts;
  },
};

let passed = Number(morePassed);
let failed = Number(moreFailed);
for (const [file, read] of Object.entries(readers)) {
  let counts;
  try {
    counts = read(readFileSync(join(folder, file), 'utf8'));
  } catch (error) {
    console.log(`${file}: no report (${error.message})`);
    failed += 1;
    continue;
  }
  console.log(`${file}: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  passed += counts.passed;
  failed += counts.failed;
  if (counts.passed + counts.failed === 0) failed += 1;
}
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0) process.exitCode = 1;
