// Builds and runs the native tests, which need neither a GPU nor a CUDA toolkit. They are built in the addon's build folder and
// link the addon's objects. `--sanitize=address,undefined` (or one of them), `thread` or `fuzzer` uses a separate build, with debug information
// and without Node; of `fuzzer`, only what scripts/fuzz.mjs runs. `--benches` builds the programs of bench/native and nothing else; `--build-only` stops after the build. Writes
// build/reports/native.xml.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onPath, parallel, removeForeignBuild, root, run } from './tools.mjs';

const sanitizer = process.argv.find((arg) => arg.startsWith('--sanitize='))?.slice('--sanitize='.length) ?? '';
const folder = join(root, 'build', sanitizer === '' ? 'cmake' : `native-tests-${sanitizer.replaceAll(',', '-')}`);
const report = join(root, 'build', 'reports', 'native.xml');
const forTests = ['-DMILLRACE_BUILD_TESTS=ON', '-DMILLRACE_WERROR=ON', '--log-level=WARNING'];

mkdirSync(join(root, 'build', 'reports'), { recursive: true });
removeForeignBuild(folder);
if (sanitizer === '') {
  // Only cmake-js knows the include folders of Node, so it must have configured the build folder.
  if (!existsSync(join(folder, 'CMakeCache.txt'))) run(process.execPath, ['scripts/build.mjs', '--native-only']);
  run('cmake', ['-S', root, '-B', folder, ...forTests]);
} else {
  const generator = onPath('ninja') ? ['-G', 'Ninja'] : [];
  const options = ['-DCMAKE_BUILD_TYPE=RelWithDebInfo', `-DMILLRACE_SANITIZE=${sanitizer}`];
  run('cmake', ['-S', root, '-B', folder, ...generator, ...options, ...forTests]);
}
const part = process.argv.includes('--benches') ? 'millrace_benches' : sanitizer === 'fuzzer' ? 'fuzz_records' : '';
run('cmake', ['--build', folder, '--parallel', parallel, ...(part === '' ? [] : ['--target', part])]);
if (part === '' && !process.argv.includes('--build-only')) {
  const reporting = ['--output-on-failure', '--test-output-size-passed', '65536', '--output-junit', report];
  // In CI a test that fails is run once more, as vitest does there; the output shows both tries.
  const retrying = process.env['CI'] ? ['--repeat', 'until-pass:2'] : [];
  // Threads take many times as long under a sanitizer.
  const limit = sanitizer === '' ? '120' : '900';
  run('ctest', ['--test-dir', folder, '--no-tests=error', '--timeout', limit, '--parallel', '2', ...retrying, ...reporting]);
}
