// Adds up the reports of a test run and prints "N passed, N failed" as its last line. Each of these counts as a failure:
//  - a report that is missing or has no test, because some tests did not run;
//  - a file of "test-files.txt" in the folder (one path per line, as test/support/list-files.ts writes them) that is missing in
//    the report of vitest, because its process crashed;
//  - an exit status of the test command other than 0 if no report names a failure.
//
//   node scripts/count-tests.mjs <folder of reports> <more passed> <more failed> <exit status of the test command>
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const [folder, morePassed, moreFailed, status = '0'] = process.argv.slice(2);

/** The listed test files that are missing in the report. */
function filesWithoutReport(report) {
  const list = join(folder, 'test-files.txt');
  if (!existsSync(list)) return [];
  // A line is "[project] path".
  const lines = readFileSync(list, 'utf8')
    .split('\n')
    .filter((line) => /\.test\.ts$/.test(line));
  // Several projects may run one file. The report does not name them, but has one entry for each.
  const left = new Map();
  for (const { name } of report.testResults) left.set(resolve(name), (left.get(resolve(name)) ?? 0) + 1);
  return lines.filter((line) => {
    const file = resolve(line.replace(/^\[[\w-]+\] /, ''));
    left.set(file, (left.get(file) ?? 0) - 1);
    return left.get(file) < 0;
  });
}

const readers = {
  'vitest.json': (text) => {
    const report = JSON.parse(text);
    // A file that could not be loaded, or whose process crashed, has no test in the report.
    const broken = report.testResults.filter((file) => file.assertionResults.length === 0).length;
    // Tests whose process crashed keep this status; skipped tests have "skipped".
    const unfinished = report.testResults.flatMap((file) =>
      file.assertionResults.filter((test) => test.status === 'pending').map((test) => [file, test]),
    );
    for (const [file, test] of unfinished) console.log(`${file.name}: ${test.fullName}: its process ended before it did`);
    // They passed at the second try, and keep what the first one said.
    for (const file of report.testResults)
      for (const { status, fullName, failureMessages = [] } of file.assertionResults)
        if (status === 'passed' && failureMessages.length > 0)
          console.log(`${file.name}: ${fullName}: failed before it passed:\n${failureMessages.join('\n')}`);
    const lost = filesWithoutReport(report);
    for (const file of lost) console.log(`${file}: no result; its process ended before its tests did`);
    const failed = report.numFailedTests + broken + unfinished.length + lost.length;
    return { passed: report.numPassedTests, failed: failed === 0 && !report.success ? 1 : failed, skipped: report.numPendingTests };
  },
  // One entry per test program, which prints its number of cases. A program that crashed before that counts as one failure.
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
