// Finds a kernel of CUDA C++ source by name, and compares its parameter list with the typed one.
import type { ParameterCheck } from '../../core/channel/build-spec.js';
import { nearestName } from '../../core/base/nearest-name.js';
import type { CudaParam, CudaParams } from '../../core/kernels/kernel.js';
import type { DeclaredTypes } from '../../cuda-cpp/read/declared-types.js';
import { findEntry, type SourceEntry, type SourceParameter } from '../../cuda-cpp/read/signature.js';
import { macrosIn, withoutDirectives } from '../../cuda-cpp/read/directives.js';
import { type GlobalFunction, globalFunctions } from '../../cuda-cpp/read/global-functions.js';
import { storesOf } from '../../cuda-cpp/read/stored-parameters.js';
import { withoutComments } from '../../cuda-cpp/read/tokens.js';
import { KernelTextError, placeOf, toCompileError } from '../diagnostics/diagnostics.js';
import { checkName, refuseArgument, shortened } from './arguments.js';
import { type CheckedEntry, type GivenSource, linePlace } from './cuda-build.js';
import { described, mismatch, valueCheck } from './parameter-types.js';

/** Most kernel names that the error for an unknown name lists. */
const MAX_SHOWN_NAMES = 10;

/** Most characters of template arguments that are searched for their begin. */
const MAX_ARGUMENTS = 500;
/** `ns::reduce<float, 256>`: a name with or without namespaces and template arguments. */
const ENTRY_NAME = /^((?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<([^;{}#"\\]*)>)?$/;

/** Checks the name of a function in the source. */
export function checkEntryName(name: unknown): asserts name is string {
  checkName(name);
  if (!ENTRY_NAME.test(name)) {
    const how = 'it is the name of the function in the source, with the arguments of its template';
    refuseArgument(`The name (${name}) must be a C++ name: ${how}.`, 'name', name);
  }
}

export type ReadSource = Omit<GivenSource, 'options' | 'deviceRuntime'>;

/** The kernels by the names that the caller gave them, which overloads share. */
export function givenNames({ text, overloads }: Pick<ReadSource, 'text' | 'overloads'>): GlobalFunction[] {
  const names = new Map([...overloads].flatMap(([path, own]) => own.map((one) => [one, path.split('::').at(-1)!] as const)));
  return globalFunctions(text).map((one) => ({ ...one, name: names.get(one.path) ?? one.name }));
}

/** Throws CompileError when the source has no such kernel, and ArgumentError when the lists differ. */
export function checkEntry(given: ReadSource, name: string, params: CudaParams): CheckedEntry {
  const { text } = given;
  const found = requireEntry(given, name);
  const entry = overloadFor(given, found, name, params);
  const { isExternC, path, parameters: listed, types, at } = entry;
  const entries = Object.entries(params);
  const parameters = listed && withPack(listed, entries.length);
  if (parameters) {
    compare(name, params, parameters, types);
    refuseStores(given, name, params, parameters, entry);
  }
  const list = entries.flatMap(([key, param], number) => {
    const parameter = parameters?.[number];
    if (parameter && !isUnknown(param, parameter)) return [];
    return [{ name: key, at: number, text: parameter && shortened(parameter.text), ...checkOf(param, text) }];
  });
  const instance = ENTRY_NAME.exec(name)?.[2];
  return {
    ...(!isExternC && { path: instance === undefined ? path : `${path}<${instance.trim()}>` }),
    ...(list.length > 0 && { checks: { count: entries.length, line: placeOf(text, at).line, list } }),
  };
}

/** Of the overloads that `found` stands for, the one that takes the parameters. Throws ArgumentError unless it is one. */
function overloadFor({ text, overloads }: ReadSource, found: SourceEntry, name: string, params: CudaParams): SourceEntry {
  const paths = overloads.get(found.path);
  if (paths === undefined) return found;
  const functions = globalFunctions(text);
  const entries = Object.values(params);
  const all = paths.flatMap((path) => findEntry(text, functions, path) ?? []);
  const fitting = all.filter(({ parameters, types }) => {
    const list = parameters && withPack(parameters, entries.length);
    return !list || (list.length === entries.length && entries.every((param, n) => mismatch(param, list[n]!, types) === undefined));
  });
  const certain = fitting.filter(
    ({ parameters }) => parameters?.length === entries.length && entries.every((param, n) => !isUnknown(param, parameters[n]!)),
  );
  // A pointer to a struct takes arrays of any type, and one to the element's own type is nearer.
  const exact = certain.filter(({ parameters }) => entries.every(({ kind }, n) => kind !== 'array' || parameters![n]!.dtype !== undefined));
  const chosen = [fitting, certain, exact].find(({ length }) => length === 1);
  if (chosen !== undefined) return chosen[0]!;
  const listed = (fitting.length === 0 ? all : fitting).map(
    ({ parameters }) => `(${parameters?.map((one) => one.text).join(', ') ?? '...'})`,
  );
  const what = fitting.length === 0 ? 'none' : `${fitting.length}`;
  const how = fitting.length === 0 ? '' : ' Give each kernel a name of its own.';
  return refuseArgument(
    `params fits ${what} of the ${all.length} overloads of '${name}' in the source: ${shortened(listed.join(', '))}.${how}`,
    'params',
    Object.keys(params),
  );
}

/** The list with as many parameters in place of a parameter pack (`Args... args`) as `count` leaves for it. Only the compiler knows their types. */
function withPack(list: readonly SourceParameter[], count: number): readonly SourceParameter[] {
  const pack = list.findIndex(({ text }) => text.includes('...'));
  if (pack < 0) return list;
  const { text } = list[pack]!;
  const one: SourceParameter = { text, dtype: undefined, isPointer: false, isConst: false };
  return [...list.slice(0, pack), ...Array.from({ length: Math.max(0, count - list.length + 1) }, () => one), ...list.slice(pack + 1)];
}

/** Whether tokens do not tell if the parameter has the declared type. A pointer to a struct accepts an array of any type. */
function isUnknown(param: CudaParam, { dtype, other, isPointer, isOpenEnum }: SourceParameter): boolean {
  const { kind } = param;
  // The launch copies as many bytes as the kernel takes, so only the compiler's answer will do.
  if (kind === 'texture' || kind === 'surface') return dtype === undefined && other === undefined;
  if (kind !== 'scalar' && kind !== 'array' && kind !== 'optional') return true;
  if (other !== undefined) return false;
  return dtype === undefined || (isOpenEnum === true && (kind === 'scalar' || isPointer));
}

function checkOf(param: CudaParam, text: string): Pick<ParameterCheck, 'dtype' | 'access' | 'value'> {
  switch (param.kind) {
    case 'scalar':
      return { dtype: param.dtype, access: undefined };
    case 'texture':
    case 'surface':
      return { dtype: 'u64', access: undefined };
    case 'array':
    case 'optional': {
      const { dtype, access } = param.kind === 'array' ? param : param.array;
      return { dtype, access };
    }
    default:
      return { dtype: described(param), access: undefined, value: valueCheck(param, text) };
  }
}

function requireEntry({ source, original, text, site, overloads, shared }: ReadSource, name: string): SourceEntry {
  const [, plain = name, given] = ENTRY_NAME.exec(name) ?? [];
  const functions = globalFunctions(text);
  const entry = findEntry(text, functions, plain);
  const refuse = (span: { readonly start: number; readonly end: number }, problem: string, hint: string): never => {
    throw toCompileError(new KernelTextError('K005', span, problem, hint), name, { text: source }, site);
  };
  if (!entry && given === undefined && isMadeByMacro(text, plain))
    return {
      isExternC: false,
      path: plain,
      isTemplate: false,
      parameters: undefined,
      types: new Map(),
      at: Math.max(0, text.search(new RegExp(`\\b${plain}\\b`))),
    };
  if (!entry) {
    const names = [...new Set(givenNames({ text, overloads }).map((one) => one.name))];
    const more = names.length > MAX_SHOWN_NAMES ? ` and ${names.length - MAX_SHOWN_NAMES} more` : '';
    const others =
      names.length === 0
        ? 'The source has no __global__ function.'
        : `The source has ${names.slice(0, MAX_SHOWN_NAMES).join(', ')}${more}.`;
    const near = nearestName(plain, names, Math.max(1, Math.floor(plain.length / 2)));
    const remedy = near === undefined ? `Write: __global__ void ${plain}(...).` : `Pass the name '${near}'.`;
    return refuse({ start: 0, end: 1 }, `The source has no kernel named '${plain}'.`, `${others} ${remedy}`);
  }
  const place = { start: text.lastIndexOf('__global__', entry.at), end: entry.at };
  if (shared.has(entry.path))
    refuse(place, `Several kernels have the name '${name}', and the source launches them.`, 'Give each kernel a name of its own.');
  if (entry.isTemplate && given === undefined)
    refuse(
      place,
      `The kernel '${name}' is a template.`,
      `Give the arguments of the template in the name: ${instancesOf(original, plain)}.`,
    );
  if (!entry.isTemplate && given !== undefined && !text.includes('#define'))
    refuse(place, `The kernel '${plain}' is not a template.`, `Leave out the arguments: '${plain}'.`);
  return entry;
}

/** The instances that host code launches, or an example. */
function instancesOf(original: string, name: string): string {
  const plain = name.split('::').at(-1)!;
  const launched = launchedInstances(withoutComments(original), plain);
  if (launched.length === 0) return `'${name}<${exampleArguments(withoutComments(original), plain)}>'`;
  const more = launched.length > MAX_SHOWN_NAMES ? ` and ${launched.length - MAX_SHOWN_NAMES} more` : '';
  const shown = launched.slice(0, MAX_SHOWN_NAMES).map((one) => `'${shortened(one)}'`);
  return `the source launches ${shown.join(', ')}${more}`;
}

/** One argument for each parameter of the template that has no default: a type, or a number. */
function exampleArguments(text: string, name: string): string {
  const at = new RegExp(`\\b${name.replaceAll('$', String.raw`\$`)}\\s*\\(`).exec(text)?.index ?? 0;
  const list = /.*\btemplate\s*<([^<>]*)>/s.exec(text.slice(Math.max(0, at - MAX_ARGUMENTS), at))?.[1] ?? 'class T';
  const needed = list.split(',').filter((param, place) => place === 0 || !param.includes('='));
  const example = (param: string): string => (/^\s*(?:typename|class)\b/.test(param) ? 'float' : /^\s*bool\b/.test(param) ? 'true' : '256');
  return needed.map(example).join(', ');
}

/** The instances of this template that host code launches, `reduce<float, 256><<<grid, block>>>(x)`, each once. `text` has no comments. */
function launchedInstances(text: string, name: string): string[] {
  const found = new Set<string>();
  for (let at = text.indexOf('<<<'); at >= 0; at = text.indexOf('<<<', at + 3)) {
    const close = text.slice(0, at).trimEnd().length - 1;
    const open = text[close] === '>' ? openingAngle(text, close) : -1;
    if (open < 0) continue;
    const before = /(?:^|[^\w$])([A-Za-z_$][\w$]*)\s*$/.exec(text.slice(Math.max(0, open - name.length - MAX_ARGUMENTS), open))?.[1];
    const given = text
      .slice(open + 1, close)
      .replace(/\s+/g, ' ')
      .trim();
    if (before === name && given !== '') found.add(`${name}<${given}>`);
  }
  return [...found];
}

function openingAngle(text: string, close: number): number {
  let depth = 0;
  for (let at = close; at >= Math.max(0, close - MAX_ARGUMENTS); at--) {
    if (text[at] === '>' && text[at - 1] !== '-') depth++;
    else if (text[at] === '<' && --depth === 0) return at;
    else if (text[at] === ';' || text[at] === '{') return -1;
  }
  return -1;
}

/** Whether a macro that defines a kernel may give it this name, also by pasting (`scale_##T`). The compiler decides. */
function isMadeByMacro(text: string, name: string): boolean {
  const bodies = macrosIn(text).flatMap(({ body }) => (body.includes('__global__') ? [body] : []));
  if (bodies.length === 0) return false;
  if (new RegExp(`\\b${name}\\b`).test(withoutDirectives(text))) return true;
  return bodies.some((body) => {
    const made = /\w+(?:[ \t]*##[ \t]*\w+)+(?=[ \t]*\()/.exec(body.slice(body.indexOf('__global__')));
    // Tokens do not tell which part is a parameter of the macro, so one literal part must be in the name.
    return made?.[0].split('##').some((part) => part.trim().length > 1 && name.includes(part.trim())) === true;
  });
}

/** `float (*f)(float)`, `float f(float)`. The compiler finds other names of such types. */
function isFunction(parameter: string): boolean {
  // `TYPE(float) n`: a macro makes the type.
  if (/^[^()]*\([^()]*\)[\s*&]*\w+$/.test(parameter)) return false;
  return /\)\s*\(|^[\w\s:*&]*(?<!\b(?:decltype|alignas|__align__|__attribute__)\s*)\(\s*(?![*&])/.test(parameter);
}

/** Throws ArgumentError when `params` differs from the list in the source. */
function compare(name: string, params: CudaParams, list: readonly SourceParameter[], types: DeclaredTypes): void {
  const entries = Object.entries(params);
  if (entries.length !== list.length) {
    const shown = shortened(list.map((parameter) => parameter.text).join(', '));
    refuseArgument(
      `params has ${entries.length} entries, but '${name}' has ${list.length} parameters in the source: (${shown}).`,
      'params',
      entries.length,
      list.length,
    );
  }
  entries.forEach(([key, param], at) => {
    const problem = isFunction(list[at]!.text) ? 'a kernel cannot take a function of the host' : mismatch(param, list[at]!, types);
    if (problem === undefined) return;
    refuseArgument(
      `The parameter '${key}' (${described(param)}) is '${shortened(list[at]!.text)}' in the source, at position ${at + 1}: ${problem}.`,
      `params.${key}`,
      described(param),
      list[at]!.text,
    );
  });
}

/** The name in `float* y`, `float *__restrict__ y` and `float y[]`. */
const PARAMETER_NAME = /[\s*&](?<name>[A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*$/;

/** Throws ArgumentError when the kernel's text stores through a parameter that is declared with input: nothing would wait for the store. */
function refuseStores(
  { text, site }: ReadSource,
  name: string,
  params: CudaParams,
  list: readonly SourceParameter[],
  { at, template }: SourceEntry,
): void {
  let stores: ReturnType<typeof storesOf> | undefined;
  for (const [number, [key, param]] of Object.entries(params).entries()) {
    const array = param.kind === 'optional' ? param.array : param;
    const parameter = list[number]!;
    if (array.kind !== 'array' || array.access !== 'in' || parameter.isConst) continue;
    const own = PARAMETER_NAME.exec(parameter.text)?.groups?.['name'];
    if (own === undefined) continue;
    stores ??= storesOf(text, at, template);
    const found = stores(own);
    if (found < 0) continue;
    const { line } = placeOf(text, found);
    const shown = shortened(text.split('\n')[line - 1]!.trim());
    const remedy = param.kind === 'optional' ? 'optional(inout(...)) or optional(output(...))' : 'inout or output';
    refuseArgument(
      `The parameter '${key}' (input) is '${shortened(parameter.text)}' in the source, and '${name}' stores through it on ${linePlace(site, line)}: ${shown} Declare it with ${remedy}.`,
      `params.${key}`,
      'input',
      parameter.text,
    );
  }
}
