// Words of CUDA C++ with arguments in parentheses that are no names of functions.

/** Attributes of any declaration. */
export const ATTRIBUTES: readonly string[] = ['__attribute__', '__align__', '__builtin_align__', 'alignas'];

/** Attributes that may stand before the name of a function. */
export const FUNCTION_ATTRIBUTES: readonly string[] = [
  ...ATTRIBUTES,
  '__launch_bounds__',
  '__cluster_dims__',
  '__block_size__',
  '__maxnreg__',
];
