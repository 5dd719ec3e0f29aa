// Adds up the reports of a test run and ends with the line "N passed, N failed". A report that is missing, or that holds
// no test, counts as a failure: something did not run. So does each of the files in "test-files.txt" of the folder (one
// path a line, as `vitest list --filesOnly` prints them) that the report of vitest lacks: its process crashed. So does an
// exit status of the test command that is not 0 while no report names a failure.
//
//   node scripts/count-tests.mjs <folder of reports> <more passed> <more failed> <exit status of the test command>
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [folder, morePassed, moreFailed, status = '0'] = process.argv.slice(2);

/** The test files that the runner was to run and that its report does not have. */
function filesWithoutReport(report) {
  const list = join(folder, 'test-files.txt');
  if (!existsSync(list)) return [];
  // A line is "[project] path".
  const lines = readFileSync(list, 'utf8')
    .split('\n')
    .filter((line) => /\.test\.ts$/.test(line));
  const reported = new Set(report.testResults.map((file) => resolve(file.name)));
  return lines.map((line) => line.replace(/^\[\w+\] /, '')).filter((file) => !reported.has(resolve(file)));
}

const readers = {
  'vitest.json': (text) => {
    const report = JSON.parse(text);
    // A file that could not be loaded, or whose process ended before, has no test in it.
    const broken = report.testResults.filter((file) => file.assertionResults.length === 0).length;
    // vitest leaves this status in tests whose process crashed, and says nothing else; skipped ones are "skipped".
    const unfinished = report.testResults.flatMap((file) =>
      file.assertionResults.filter((test) => test.status === 'pending').map((test) => [file, test]),
    );
    for (const [file, test] of unfinished) console.log(`${file.name}: ${test.fullName}: its process ended before it did`);
    const lost = filesWithoutReport(report);
    for (const file of lost) console.log(`${file}: no result; its process ended before its tests did`);
    const failed = report.numFailedTests + broken + unfinished.length + lost.length;
    return { passed: report.numPassedTests, failed: failed === 0 && !report.success ? 1 : failed, skipped: report.numPendingTests };
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
if (failed === 0 && status !== '0') {
  console.log(`The test command ended with ${status}, and no report names a failure.`);
  failed = 1;
}
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0) process.exitCode = 1;
