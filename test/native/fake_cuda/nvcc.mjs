#!/usr/bin/env node
// Replaces nvcc for the fake driver: `nvcc.mjs -cubin -arch=sm_90 [-DN=4] in.cu -o out.cubin`. Its output is a shared object of the CPU
// device with every kernel of the source, which the fake driver loads and runs. Messages have the C++ compiler's format.
//
// `nvcc.mjs --serve SOCKET` builds what nvcc_client.cpp asks for until its standard input ends: Node and the library start once.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** The build under test, found from any working directory. */
async function library() {
  const built = new URL('../../../dist/', import.meta.url);
  const parts = [
    'toolchain/compilers/cpu-compiler.js',
    'toolchain/base/package-and-cpu-identity.js',
    'cuda-cpp/select/supported-kernels.js',
    'cuda-cpp/read/global-functions.js',
    'cuda-cpp/read/tokens.js',
  ];
  return Object.assign({}, ...(await Promise.all(parts.map((part) => import(new URL(part, built).href)))));
}

/** By MILLRACE_CXX: opening one asks the compiler for its version. */
const compilers = new Map();

/** Throws what the compiler says. */
async function build({ input, output, options, cxx }) {
  const { CpuCompiler, withSupportedKernels, globalFunctions, withoutComments } = await library();
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
  if (!compilers.has(cxx)) compilers.set(cxx, CpuCompiler.open({ ...process.env, MILLRACE_CXX: cxx }));
  const compiler = await compilers.get(cxx);
  writeFileSync(output, await compiler.compile(named, kernels));
}

/** What nvcc does with these arguments: its exit code and messages. */
async function run(args, cxx) {
  // Whether the host compiler runs.
  if (args.includes('-E')) return { status: 0, messages: '' };
  let input;
  let linked;
  let output;
  const options = [];
  for (let i = 0; i < args.length; i++) {
    if (args[i] === '-o') output = args[++i];
    else if (args[i].endsWith('.cu')) input = args[i];
    else if (args[i].endsWith('.cubin')) linked = args[i];
    else options.push(args[i]);
  }
  // Linking with the device runtime adds nothing, because the fake driver contains it.
  const isLink = options.includes('-dlink');
  if ((isLink ? linked : input) === undefined || output === undefined)
    return { status: 1, messages: 'nvcc fatal   : an input (.cu) and -o are needed\n' };
  try {
    if (isLink) copyFileSync(linked, output);
    else await build({ input, output, options, cxx });
    return { status: 0, messages: '' };
  } catch (error) {
    return { status: 2, messages: `${error.log || error.message}\n` };
  }
}

function serve(path) {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    let request = '';
    // A build that was given up.
    client.on('error', () => {});
    client.setEncoding('utf8').on('data', (text) => (request += text));
    client.on('end', () => {
      const [cxx, ...args] = request.split('\0').slice(0, -1);
      void run(args, cxx).then(({ status, messages }) => client.end(String.fromCharCode(status) + messages));
    });
  });
  server.listen(path);
  process.stdin.resume().on('end', () => process.exit(0));
}

const args = process.argv.slice(2);
if (args[0] === '--serve') {
  serve(args[1]);
} else if (args.includes('--version')) {
  // What it writes changes with the library, and images are remembered by this.
  const { packageIdentity } = await library();
  process.stdout.write(`nvcc: stand-in for tests\nCuda compilation tools, release 12.0, V12.0.0, ${await packageIdentity()}\n`);
} else {
  const { status, messages } = await run(args, process.env.MILLRACE_CXX ?? '');
  process.stderr.write(messages);
  process.exit(status);
}
