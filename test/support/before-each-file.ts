// Runs before each test file.
import { expect } from 'vitest';
import { useCompilerOf } from './quick-compiler.js';

const file = expect.getState().testPath ?? '';
// Some of these end a process while it compiles: they have the compiler itself.
if (file.includes('/test/process/')) process.env['PATH'] = process.env['PATH']?.replace(/^[^:]*\/kept-compiler:/, '');
useCompilerOf(file);
// An emulated Node cannot start itself.
process.execPath = process.env['MILLRACE_TEST_NODE'] ?? process.execPath;
