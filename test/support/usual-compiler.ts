// Before each test file: tests of whole processes, some of which end one while it compiles, have the compiler that users have.
import { expect } from 'vitest';

if (expect.getState().testPath?.includes('/test/process/'))
  process.env['PATH'] = process.env['PATH']?.replace(/^[^:]*\/kept-compiler:/, '');
// An emulated Node cannot start itself.
process.execPath = process.env['MILLRACE_TEST_NODE'] ?? process.execPath;
