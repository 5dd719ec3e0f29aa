// The rules that a CompileError names: what is wrong, the remedy, and the section of the documentation. To add one, add a row here and the same
// row to docs/kernel-language.md (Codes).
//
// K0 is about the source, K1 names, K2 types, K3 syntax, K4 barriers and memory, K7 builds.

export const COMPILE_CODES = {
  K001: 'the body is no function, or has no source | pass the function itself, not the result of `bind()` | [Build tools](#build-tools)',
  K002: 'the source of the body cannot be parsed | write it as a function expression | [Build tools](#build-tools)',
  K003: 'the body is async or a generator | make it a plain function | [Statements and functions](#statements-and-functions)',
  K004: 'a parameter of a body is no plain name, or there are too many or too few | two parameters at most: the arguments and the thread | [Statements and functions](#statements-and-functions)',
  K005: 'CUDA source without the kernel, or with other parameters | name a kernel of the source | [Names of kernels](cuda-code.md#names-of-kernels)',
  K006: 'source that is too long (128 KiB; CUDA source: 4,194,304 characters), too large when expanded, or nested too deeply | split the kernel or the expression | [Statements and functions](#statements-and-functions)',
  K101: 'a name or a function that is not known in the kernel | pass it as a parameter, or by `{ constants }` or `{ functions }` | [Statements and functions](#statements-and-functions)',
  K102: 'a name that is no parameter of the kernel | declare it in `params` | [Arrays](#arrays)',
  K103: 'a free name that a minifier may have changed | pass it by `{ constants }` or `{ functions }` | [Build tools](#build-tools)',
  K104: 'an assignment to a constant, a parameter or a part of a vector | copy it into a `let`, or assign a new vector | [Statements and functions](#statements-and-functions)',
  K201: 'a value of another kind than is needed: no number, no integer, a bool | cast it, or choose with `?:` | [Types](#types)',
  K203: 'a variable that needs two types | cast one of the values, or initialize it with the wanted type | [Types](#types)',
  K204: 'two integer types meet | cast one of them | [Types](#types)',
  K205: '`/` on two integers | write `idiv(a, b)`, or `f32(a) / b` | [Types](#types)',
  K206: 'a number that does not fit its type, or would lose its fraction | cast it | [Types](#types)',
  K207: 'f64 where f32 is needed | write `f32(...)` | [Types](#types)',
  K208: 'a `let` that is read before a value is assigned to it | initialize it, or assign it on every path | [Types](#types)',
  K209: 'an element type that this use does not have | use one of the types that the message lists | [Arrays](#arrays)',
  K210: 'another number of dimensions than the array has | index every dimension | [Arrays](#arrays)',
  K211: 'a store to an input | declare it as `output(...)` or `inout(...)` | [Arrays](#arrays)',
  K212: 'a wrong number of arguments | give as many as the function takes | [Statements and functions](#statements-and-functions)',
  K213: 'a vector where a number is needed, or the reverse; vectors of different types | take a member, or calculate with `add`, `sub`, `mul`, `scale` and `dot` | [Vectors](#vectors)',
  K301: 'syntax outside the language, or a statement as a value | write what the message suggests | [Statements and functions](#statements-and-functions)',
  K302: 'a function in a place where it cannot be: recursion, a barrier in a helper, a cast to a type without registers | write a loop, or move it to the body of the kernel | [Statements and functions](#statements-and-functions)',
  K303: 'a kernel that returns a value, or a helper that does not | write the result into an array; return a value on every path of a helper | [Statements and functions](#statements-and-functions)',
  K401: 'a barrier that not all threads reach | move it out of the condition | [Barriers and assertions](#barriers-and-assertions)',
  K402: 'memory that is declared where it cannot be | declare it at the top of the body | [Memory of the block and of the thread](#memory-of-the-block-and-of-the-thread)',
  K403: 'a size of declared memory that is not known when the kernel is made | use numbers and `{ constants }`, or `sharedDynamic(type)` | [Memory of the block and of the thread](#memory-of-the-block-and-of-the-thread)',
  K404: 'more declared memory than a block or a thread has | use `sharedDynamic(type)`, or an array of the launch | [Memory of the block and of the thread](#memory-of-the-block-and-of-the-thread)',
  K701: 'no compiler or device runtime was found | install one, or name it by the variable in the message | [How kernels are built](#how-kernels-are-built)',
  K702: 'source that the compiler refuses | read `log`, which has the places in your file | [CUDA C++ source](#cuda-c-source)',
  K703: 'source that the CPU device cannot run | use another feature, or a GPU | [What differs by device](cuda-code.md#what-differs-by-device)',
  K704: 'a compiler that exceeded its time | split the source | [How kernels are built](#how-kernels-are-built)',
  K705: 'a variable that the compiled image does not have, or that has another size there | use the variable in a kernel, or give its type | [Modules](#modules)',
  K706: 'source that no device can run | remove what CUDA no longer has | [CUDA C++ source](#cuda-c-source)',
  K707: 'a build that failed for a reason outside the source: no descriptors, no memory, no temporary folder, a signal | mend the reason; the next launch builds again | [How kernels are built](#how-kernels-are-built)',
  K708: 'no image for this device in the folder of images, and no compiler | build it ahead of time for this device, or install a compiler | [Built ahead of time](#built-ahead-of-time)',
} as const;

export type CompileCode = keyof typeof COMPILE_CODES;
