// Builds and runs the native tests: plain CMake, no Node, no GPU, no toolkit. `--sanitize=address|thread` uses a build
// of its own; `--build-only` stops after the build. Writes build/reports/native.xml.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onPath, root, run } from './tools.mjs';

const sanitizer = process.argv.find((arg) => arg.startsWith('--sanitize='))?.slice('--sanitize='.length) ?? '';
const folder = join(root, 'build', sanitizer === '' ? 'native-tests' : `native-tests-${sanitizer}`);
const report = join(root, 'build', 'reports', 'native.xml');
const generator = onPath('ninja') ? ['-G', 'Ninja'] : [];

mkdirSync(join(root, 'build', 'reports'), { recursive: true });
run('cmake', [
  ...['-S', root, '-B', folder, ...generator],
  ...[
    '-DCMAKE_BUILD_TYPE=RelWithDebInfo',
    '-DMILLRACE_BUILD_TESTS=ON',
    '-DMILLRACE_WERROR=ON',
    `-DMILLRACE_SANITIZE=${sanitizer}`,
    '--log-level=WARNING',
  ],
]);
run('cmake', ['--build', folder, '--parallel', '2']);
if (!process.argv.includes('--build-only')) {
  const reporting = ['--output-on-failure', '--test-output-size-passed', '65536', '--output-junit', report];
  run('ctest', ['--test-dir', folder, '--no-tests=error', '--timeout', '120', ...reporting]);
}
