// Emits static_asserts after the source, which fail when a kernel's parameter has another type than the declared one. They cover types that
// tokens do not tell; the definition of a kernel compares the others.
import type { BuildSpec, ParameterCheck, ParameterChecks } from '../../core/channel/build-spec.js';
import { SOURCE_NAME } from '../base/diagnostics.js';
import { tokenize } from '../../cuda-cpp/read/tokens.js';
import { kernelPaths } from '../../cuda-cpp/lower/rewrite.js';
import { FIELD_MACROS, fieldTemplates } from './value-checks.js';

/** Values of `mr_kind<T>::mr_value` in C++, and how messages describe them. */
const KINDS: readonly (readonly [code: number, shown: string])[] = [
  [0, 'neither a number nor a pointer'],
  [11, 'bool'],
  ...[1, 2, 4, 8].map((size) => [20 + size, `a signed integer of ${bytes(size)}`] as const),
  ...[1, 2, 4, 8].map((size) => [30 + size, `an unsigned integer of ${bytes(size)}`] as const),
  [42, 'a floating-point number of 2 bytes'],
  [44, 'a floating-point number of 4 bytes'],
  [48, 'a floating-point number of 8 bytes'],
  [50, 'a pointer'],
  [60, 'a struct'],
  ...[1, 2, 4, 8].map((size) => [70 + size, `an enum of ${bytes(size)}`] as const),
];
const [OTHER, POINTER, STRUCT] = [0, 50, 60];

const IS_STRUCT = 'a struct passed by value is declared with struct({ ... }) or bytes(n)';

function bytes(size: number): string {
  return size === 1 ? '1 byte' : `${size} bytes`;
}

/** Names begin with mr_, because the source's macros apply here too. Needs only C++11. */
const HELPERS = `namespace mr_parameters {
template <bool, class mr_T> struct mr_base { enum { mr_value = 0 }; };
template <class mr_T> struct mr_kind { enum { mr_value = __is_class(mr_T) || __is_union(mr_T) ? 60 : mr_base<__is_enum(mr_T), mr_T>::mr_value }; };
template <class mr_T> struct mr_kind<const mr_T> : mr_kind<mr_T> {};
template <class mr_T> struct mr_kind<volatile mr_T> : mr_kind<mr_T> {};
template <class mr_T> struct mr_kind<const volatile mr_T> : mr_kind<mr_T> {};
template <class mr_T> struct mr_kind<mr_T*> { enum { mr_value = 50 }; };
template <class mr_T> struct mr_kind<mr_T* __restrict__> : mr_kind<mr_T*> {};
template <> struct mr_kind<bool> { enum { mr_value = 11 }; };
${['char', 'signed char', 'short', 'int', 'long', 'long long', 'wchar_t']
  .map((type) => `template <> struct mr_kind<${type}> { enum { mr_value = ((${type})-1 < (${type})0 ? 20 : 30) + sizeof(${type}) }; };`)
  .join('\n')}
${['unsigned char', 'unsigned short', 'unsigned', 'unsigned long', 'unsigned long long', 'char16_t', 'char32_t']
  .map((type) => `template <> struct mr_kind<${type}> { enum { mr_value = 30 + sizeof(${type}) }; };`)
  .join('\n')}
template <> struct mr_kind<float> { enum { mr_value = 44 }; };
template <> struct mr_kind<double> { enum { mr_value = 48 }; };
template <class mr_T> struct mr_base<true, mr_T> { enum { mr_value = 70 + sizeof(mr_T) }; };
template <class mr_T> struct mr_target { typedef void mr_type; };
template <class mr_T> struct mr_target<mr_T*> { typedef mr_T mr_type; };
template <class mr_T> struct mr_target<mr_T* __restrict__> { typedef mr_T mr_type; };
template <class mr_T> struct mr_is_const { enum { mr_value = 0 }; };
template <class mr_T> struct mr_is_const<const mr_T> { enum { mr_value = 1 }; };
template <class mr_T> struct mr_is_function { enum { mr_value = 0 }; };
template <class mr_R, class... mr_T> struct mr_is_function<mr_R(mr_T...)> { enum { mr_value = 1 }; };
#if defined(__cpp_noexcept_function_type)
template <class mr_R, class... mr_T> struct mr_is_function<mr_R(mr_T...) noexcept> { enum { mr_value = 1 }; };
#endif
template <unsigned long> struct mr_sized { typedef void mr_type; };
template <class mr_T, class = void> struct mr_extent { enum { mr_value = 0 }; };
template <class mr_T> struct mr_extent<mr_T, typename mr_sized<sizeof(mr_T)>::mr_type> { enum { mr_value = sizeof(mr_T) }; };
template <class mr_T> struct mr_count;
template <class... mr_T> struct mr_count<mr_types<mr_T...>> { enum { mr_value = sizeof...(mr_T) }; };
template <unsigned mr_N, class mr_T> struct mr_at { typedef void mr_type; };
template <unsigned mr_N, class mr_T, class... mr_U> struct mr_at<mr_N, mr_types<mr_T, mr_U...>> : mr_at<mr_N - 1, mr_types<mr_U...>> {};
template <class mr_T, class... mr_U> struct mr_at<0, mr_types<mr_T, mr_U...>> { typedef mr_T mr_type; };
}
`;

/** On the CPU device, kernel_exports.h defines these. */
const CUDA_HELPERS = `namespace mr_parameters {
template <class... mr_T> struct mr_types {};
template <class mr_T> struct mr_signature;
template <class mr_R, class... mr_T> struct mr_signature<mr_R(mr_T...)> { typedef mr_types<mr_T...> mr_list; };
#if defined(__cpp_noexcept_function_type)
template <class mr_R, class... mr_T> struct mr_signature<mr_R(mr_T...) noexcept> { typedef mr_types<mr_T...> mr_list; };
#endif
}
`;

/** The source for CUDA's compilers, whose own line numbers stay the same, and the checks of these kernels of it. */
export function checkedSource(source: string, kernels: readonly BuildSpec[]): string {
  if (!kernels.some(({ parameterChecks: checks }) => checks)) return source;
  const checks = parameterChecks(kernels, kernelPaths(tokenize(source).tokens), 'mr_parameters::mr_signature');
  return `${source}\n#line 1 "parameters"\n${CUDA_HELPERS}${checks}`;
}

/**
 * The checks of kernels of one source, to follow `mr_types` and the template `signature`; empty without checks. `paths`: the C++ names of
 * kernels that are `extern "C"`, by their names.
 */
export function parameterChecks(kernels: readonly BuildSpec[], paths: ReadonlyMap<string, string>, signature = 'mr_signature'): string {
  const found = kernels.flatMap(({ entry, path, parameterChecks: checks }, at) =>
    checks ? [checksOf(entry, `${signature}<decltype(${path ?? paths.get(entry) ?? entry})>::mr_list`, checks, at)] : [],
  );
  if (found.length === 0) return '';
  const templates = found.map(({ definitions }) => definitions).join('');
  const macros = templates === '' ? '' : FIELD_MACROS;
  return `#line 1 "parameters"\n${HELPERS}${macros}${templates}${found.map(({ assertions }) => assertions).join('')}`;
}

/** Assertions, and the templates that they need. */
interface Assertions {
  readonly definitions: string;
  readonly assertions: string;
}

/** The checks of the kernel with the number `kernel`. `types`: the list of its parameters' types, in C++. */
function checksOf(entry: string, types: string, { count, line, list }: ParameterChecks, kernel: number): Assertions {
  const place = `#line ${line} "${SOURCE_NAME}"\n`;
  const differs = `params has ${count} entries, but '${entry}' has a different number of parameters in the source`;
  const counted = `${place}static_assert(mr_parameters::mr_count<${types}>::mr_value == ${count}, ${quoted(differs)});\n`;
  const found = list.map((check) => assertionsOf(check, types, kernel));
  return {
    definitions: found.map(({ definitions }) => definitions).join(''),
    assertions: counted + found.map(({ assertions }) => place + assertions).join(''),
  };
}

/** All assertions are on one line, so that each is reported at the parameter list's line. */
function assertionsOf(check: ParameterCheck, types: string, kernel: number): Assertions {
  const { name, at, dtype, access, text, value } = check;
  const type = `mr_parameters::mr_at<${at}, ${types}>::mr_type`;
  const target = `mr_parameters::mr_target<${type}>::mr_type`;
  const declared = access === undefined ? dtype : `${dtype}*`;
  const what = `The parameter '${name}' (${declared}) is ${text === undefined ? 'another type' : `'${text}'`} in the source, at position ${at + 1}`;
  const refuse = (isRight: string, problem: string): string => `static_assert(${isRight}, ${quoted(`${what}: ${problem}`)}); `;
  const isNot = (of: string, code: number): string => `mr_parameters::mr_kind<${of}>::mr_value != ${code}`;
  const accepted = new Set(kindsOf(dtype));
  const found: string[] = [];
  let definitions = '';
  if (value !== undefined) {
    const templates = fieldTemplates(`${kernel}_${at}`, value, kindsOf);
    definitions = templates.definitions;
    for (const [isRight, problem] of templates.conditions(type)) found.push(refuse(isRight, problem));
  } else if (access === undefined) {
    for (const [code, shown] of KINDS) {
      if (accepted.has(code)) continue;
      // CUDA's half and bfloat16 are structs of two bytes.
      const isHalf = code === STRUCT && (dtype === 'f16' || dtype === 'bf16') ? ` || sizeof(${type}) == 2` : '';
      const reason = code === POINTER ? 'a scalar cannot be a pointer' : code === STRUCT ? IS_STRUCT : undefined;
      found.push(refuse(`${isNot(type, code)}${isHalf}`, reason ?? `its type there is ${shown}`));
    }
  } else {
    found.push(refuse(`mr_parameters::mr_kind<${type}>::mr_value == ${POINTER}`, 'an array needs a pointer'));
    found.push(refuse(`!mr_parameters::mr_is_function<${target}>::mr_value`, 'a kernel cannot take a function of the host'));
    // Pointers to structs, to void and to pointers accept arrays of any type, but for structs that are smaller than an element: most of these
    // are half and bfloat16 by another name.
    const extent = `mr_parameters::mr_extent<${target}>::mr_value`;
    const isLarge = `mr_parameters::mr_kind<${target}>::mr_value != ${STRUCT} || ${extent} == 0 || ${extent} >= ${bytesOf(dtype)}`;
    found.push(refuse(isLarge, 'its elements there are smaller structs; half is declared as f16, and __nv_bfloat16 as bf16'));
    for (const [code, shown] of KINDS) {
      if (accepted.has(code) || [OTHER, POINTER, STRUCT].includes(code)) continue;
      found.push(refuse(isNot(target, code), `its elements there are ${shown.replace(/^(?:an?) (.*?)( of .*)?$/, '$1s$2')}`));
    }
    if (access !== 'in') {
      const isRight = `!mr_parameters::mr_is_const<${target}>::mr_value`;
      found.push(refuse(isRight, `an ${access} array cannot be const`));
    }
  }
  return { definitions, assertions: `${found.join('')}\n` };
}

/** The size of an element: names end with their bits. */
function bytesOf(dtype: string): number {
  return dtype === 'bool' ? 1 : Number(/\d+$/.exec(dtype)?.[0]) / 8;
}

/** The kinds that values of a type may have: those with the same layout. */
function kindsOf(dtype: string): readonly number[] {
  if (dtype === 'bool') return [11, 31, 71];
  if (dtype === 'f16') return [42, 32];
  if (dtype === 'bf16') return [32];
  const size = bytesOf(dtype);
  if (dtype.startsWith('f')) return [40 + size];
  return [(dtype.startsWith('u') ? 30 : 20) + size, 70 + size];
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&').replace(/[^\x20-\x7e]/g, '?')}"`;
}
