#!/usr/bin/env node
// Replaces nvcc for the fake driver: `nvcc.mjs -cubin -arch=sm_90 [-DN=4] in.cu -o out.cubin`. Its output is a shared object of the CPU
// device with every kernel of the source, which the fake driver loads and runs. Messages have the C++ compiler's format.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';

// The build under test, found from any working directory.
const built = new URL('../../../dist/toolchain/', import.meta.url);
const { CpuCompiler } = await import(new URL('compilers/cpu-compiler.js', built).href);
const { packageIdentity } = await import(new URL('base/package-and-cpu-identity.js', built).href);
const { withSupportedKernels } = await import(new URL('../cuda-cpp/select/supported-kernels.js', built).href);
const { globalFunctions } = await import(new URL('../cuda-cpp/read/global-functions.js', built).href);
const { withoutComments } = await import(new URL('../cuda-cpp/read/tokens.js', built).href);

const args = process.argv.slice(2);
if (args.includes('--version')) {
  // What it writes changes with the library, and images are remembered by this.
  process.stdout.write(`nvcc: stand-in for tests\nCuda compilation tools, release 12.0, V12.0.0, ${await packageIdentity()}\n`);
  process.exit(0);
}

// Whether the host compiler runs.
if (args.includes('-E')) process.exit(0);

// Linking with the device runtime adds nothing, because the fake driver contains it.
if (args.includes('-dlink')) {
  copyFileSync(
    args.find((arg) => arg.endsWith('.cubin') && arg !== args[args.indexOf('-o') + 1]),
    args[args.indexOf('-o') + 1],
  );
  process.exit(0);
}

let input;
let output;
const options = [];
for (let i = 0; i < args.length; i++) {
  if (args[i] === '-o') output = args[++i];
  else if (args[i].endsWith('.cu')) input = args[i];
  else options.push(args[i]);
}
if (input === undefined || output === undefined) {
  process.stderr.write('nvcc fatal   : an input (.cu) and -o are needed\n');
  process.exit(1);
}

// Not what compares the parameter lists: kernels of the CPU device have other ones.
const [given] = readFileSync(input, 'utf8').split('\n#line 1 "parameters"');
const isLaunching = options.includes('--relocatable-device-code=true');
// Like a GPU compiler, it keeps everything that can be looked up by name.
const whole = {
  source: given,
  isModule: true,
  entry: '',
  name: 'all',
  options,
  fmad: true,
  isBounded: false,
  isChecked: false,
  isLaunching,
  // A text of the package's own, of a TypeScript function.
  ...(/\bint mr_n0\b/.test(given) && { identity: 'own' }),
  mapping: { file: input, lines: [] },
};
try {
  // The kernels that use what the stand-in lacks are left out, unless there are no others.
  const spec = whole.identity === undefined ? withSupportedKernels(whole) : whole;
  // Others are only launched by kernels.
  const isEntry = ({ isExternC, template }) => isExternC && template === undefined;
  const kernels = [
    ...new Set(
      globalFunctions(withoutComments(spec.source))
        .filter(isEntry)
        .map(({ name }) => name),
    ),
  ];
  const named = { ...spec, entry: kernels[0] ?? '', name: kernels.join(', ') };
  const compiler = await CpuCompiler.open();
  writeFileSync(output, await compiler.compile(named, kernels));
} catch (error) {
  process.stderr.write(`${error.log || error.message}\n`);
  process.exit(2);
}
