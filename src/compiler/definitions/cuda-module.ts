// cudaModule(): CUDA C++ source of several kernels, and the variables that they share. Each request for a kernel or variable compares it
// with the source's tokens; the device's compiler checks the rest.
import { KERNEL_STAYS } from '../../core/base/uncloneable.js';
import { type DType, DTYPES } from '../../core/elements/dtype.js';
import { lengthOf } from '../../core/elements/shape.js';
import { defined } from '../../core/kernels/definitions.js';
import { type Kernel, MADE } from '../../core/kernels/kernel.js';
import type { ModuleSource, ModuleVariable } from '../../core/kernels/module.js';
import type { BuildSpec } from '../../core/channel/build-spec.js';
import { type SourceVariable, variablesOf } from '../../cuda-cpp/read/variables.js';
import type { CallSite } from '../diagnostics/diagnostics.js';
import { checkedCudaParams, checkOptions, refuseArgument, shortened } from './arguments.js';
import { checkedOptions, type GivenSource, kernelSpec, readGivenSource, sourceSpec } from './cuda-build.js';
import { checkEntry, checkEntryName, givenNames } from './cuda-entry.js';
import type { CudaOptions } from './cuda-kernel.js';
import { areSame } from './parameter-types.js';

/** Reads a module's source. `site` is the caller. */
export function readModule(passed: string | URL, opts: CudaOptions, caller: CallSite): ModuleSource {
  checkOptions(opts);
  const options = checkedOptions(opts.options ?? []);
  const given: GivenSource = { ...readGivenSource(passed, opts.file, options, caller), options };
  const { source, original, text } = given;
  const variables = variablesOf(text, source);
  const kernelNames = unique(givenNames(given).filter(({ template }) => template === undefined));
  const instances = new TemplateInstances();
  const build: BuildSpec = { ...sourceSpec(given, kernelNames.join(', ')), entry: '', isModule: true };
  const module: ModuleSource = {
    build,
    closed: () => {
      const own = instances.close();
      return { ...build, name: [...kernelNames, ...own].join(', '), instances: own };
    },
    kernelNames,
    variableNames: unique(variables.filter(isReachable)),
    kernel(name, params) {
      checkEntryName(name);
      const own = checkedCudaParams(params) as typeof params;
      const entry = checkEntry(given, name, own);
      const path = name.includes('<') ? instances.add(name, entry.path as string) : entry.path;
      const made: Kernel<typeof params> = {
        uncloneable: KERNEL_STAYS,
        name,
        params: own,
        source: original,
        [MADE]: true,
        build: { ...kernelSpec(given, name, { ...entry, ...(path !== undefined && { path }) }), isModule: true },
        abi: 'plain',
        indexRank: 0,
        module,
      };
      return defined(made);
    },
    variable(name, dtype, shape) {
      if (typeof name !== 'string') refuseArgument(`The name (${shortened(name)}) must be a string.`, 'name', name);
      const found = variables.filter((one) => one.name === name && !one.isExtern);
      if (found.length === 0) return undeclared(name, text, module.variableNames);
      // Only the preprocessor knows which of several declarations is compiled.
      if (found.length === 1) checkVariable(found[0] as SourceVariable, dtype, shape);
      return { name, isConstant: found.every(({ space }) => space === 'constant') };
    },
  };
  return defined(module);
}

/** The instances of kernel templates that a module has. */
class TemplateInstances {
  /** C++ names, by the name without spaces. */
  readonly #paths = new Map<string, string>();
  #isClosed = false;

  /** The C++ name of the instance, as it was first spelled. Throws ArgumentError for one that the module is built without. */
  add(name: string, path: string): string {
    const key = path.replace(/\s*([^\w\s])\s*/g, '$1');
    const known = this.#paths.get(key);
    if (known !== undefined) return known;
    if (this.#isClosed) {
      const how = 'call kernel for it before the first launch, compile or global of the module, or make it with cudaKernel';
      refuseArgument(`The module is built already, without the instance '${name}' of a template: ${how}.`, 'name', name);
    }
    this.#paths.set(key, path);
    return path;
  }

  close(): readonly string[] {
    this.#isClosed = true;
    return [...this.#paths.values()];
  }
}

function unique(named: readonly { readonly name: string }[]): readonly string[] {
  return Object.freeze([...new Set(named.map(({ name }) => name))]);
}

function isReachable({ isConst, isExtern, isHidden }: SourceVariable): boolean {
  return !isConst && !isExtern && !isHidden;
}

/** The name has no declaration that tokens show, but a macro or a template may still produce one. */
function undeclared(name: string, text: string, names: readonly string[]): ModuleVariable {
  const word = name.split('::').at(-1) as string;
  const isHidden = /^[ \t]*#[ \t]*(?:define|include|if)/m.test(text) && new RegExp(`\\b${word.replace(/\W/g, '')}\\b`).test(text);
  if (!isHidden || !/^(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*$/.test(name)) {
    const has =
      names.length === 0 ? 'The source has no variable that global() can return.' : `The source has ${shortened(names.join(', '))}.`;
    refuseArgument(`The source has no variable '${shortened(name)}' outside of functions. ${has}`, 'name', name, names);
  }
  return { name, isConstant: false };
}

function checkVariable(
  { name, isConst, isHidden, text, dtype: own, byteLength }: SourceVariable,
  dtype: DType,
  shape: readonly number[],
): void {
  const what = `The variable '${name}'`;
  if (isConst)
    refuseArgument(
      `${what} (${text}) is const, so compilers may have replaced its reads by its value: declare it without const.`,
      'name',
      name,
    );
  if (isHidden)
    refuseArgument(
      `${what} (${text}) is static in a namespace, or in an unnamed namespace, so CUDA cannot find its name: declare it non-static in a named namespace.`,
      'name',
      name,
    );
  if (own !== undefined && !areSame(dtype, own))
    refuseArgument(`${what} is '${shortened(text)}' in the source: its element type is ${own}, not ${dtype}.`, 'dtype', dtype, own);
  const bytes = lengthOf(shape) * DTYPES[dtype].byteSize;
  if (byteLength !== undefined && bytes !== byteLength) {
    const asked = `${dtype}[${shape.join(', ')}]`;
    refuseArgument(
      `${what} is '${shortened(text)}' in the source: its size (${byteLength} bytes) differs from that of ${asked} (${bytes} bytes).`,
      'shape',
      shape,
      byteLength,
    );
  }
}
