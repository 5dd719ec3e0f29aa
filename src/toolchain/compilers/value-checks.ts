// The checks of a parameter that a kernel takes by value: its size and alignment, and the place of each field that the source's type has
// under the declared name. A field that it does not have under this name is compared by its neighbours and by the size.
import type { FieldCheck, ValueCheck } from '../../core/channel/build-spec.js';

/** Templates that find fields, and how the assertions use them. */
export interface FieldTemplates {
  readonly definitions: string;
  /** Conditions of the type, each with the problem if it is false. */
  conditions(type: string): readonly (readonly [isRight: string, problem: string])[];
}

const POINTER = 50;

/** NVRTC has neither the builtin function nor the macro, but what EDG's macro is made of. */
export const FIELD_MACROS = `#if defined(__CUDACC_RTC__) && !defined(MILLRACE_CPU_DEVICE)
#define mr_offsetof(mr_T, mr_path) __INTADDR__(&static_cast<mr_T*>(nullptr)->mr_path)
#else
#define mr_offsetof(mr_T, mr_path) __builtin_offsetof(mr_T, mr_path)
#endif
`;

/**
 * `parameter` distinguishes the parameter in names: its kernel's number and its own. `kindsOf` gives the kinds of types with the layout of an
 * element type. All names begin with mr_, because the source's macros apply here too.
 */
export function fieldTemplates(
  parameter: string,
  { byteSize, align, fields }: ValueCheck,
  kindsOf: (dtype: string) => readonly number[],
): FieldTemplates {
  const names = fields.map((_field, number) => `mr_field_${parameter}_${number}`);
  const definitions = fields.map((field, number) => definitionOf(field, names[number] as string, kindsOf));
  return {
    definitions: `namespace mr_parameters {\n${definitions.join('')}}\n`,
    conditions: (type) => {
      const isValue = `mr_parameters::mr_kind<${type}>::mr_value != ${POINTER}`;
      const isAsLarge = `sizeof(${type}) == ${byteSize}`;
      const rest: (readonly [isRight: string, problem: string])[] = fields.flatMap(({ path, offset, type: declared }, number) => {
        const found = `mr_parameters::${names[number]}<${type}>`;
        const what = `its field '${path}'${declared === undefined ? '' : ` (${declared})`}`;
        return [
          [`${found}::mr_is_placed`, `${what} is not at offset ${offset} there`],
          [`!${found}::mr_is_placed || ${found}::mr_is_alike`, `${what} has another type there`],
        ];
      });
      if (align !== undefined) rest.push([`alignof(${type}) == ${align}`, `its alignment there is not ${align} bytes`]);
      return [
        [isValue, 'a value cannot be a pointer'],
        [`!(${isValue}) || ${isAsLarge}`, `its size there is not ${byteSize} bytes`],
        // With another size, one message is enough.
        ...rest.map(([isRight, problem]) => [`!(${isAsLarge}) || (${isRight})`, problem] as const),
      ];
    },
  };
}

/** The first template holds for types without the field. */
function definitionOf({ path, offset, byteSize, type }: FieldCheck, name: string, kindsOf: (dtype: string) => readonly number[]): string {
  const member = `static_cast<mr_T*>(nullptr)->${path}`;
  const kind = `mr_kind<decltype(${member})>::mr_value`;
  const kinds = type === undefined ? [] : type === 'pointer' ? [POINTER] : kindsOf(type);
  // CUDA's half is a struct of two bytes.
  const isKind = type === undefined || type === 'f16' || type === 'bf16' ? 'true' : kinds.map((code) => `${kind} == ${code}`).join(' || ');
  return (
    `template <class mr_T, class mr_U = void> struct ${name} { enum { mr_is_placed = 1, mr_is_alike = 1 }; };\n` +
    `template <class mr_T> struct ${name}<mr_T, decltype(static_cast<void>(${member}))> { enum { ` +
    `mr_is_placed = mr_offsetof(mr_T, ${path}) == ${offset}, mr_is_alike = sizeof(${member}) == ${byteSize} && (${isKind}) }; };\n`
  );
}
