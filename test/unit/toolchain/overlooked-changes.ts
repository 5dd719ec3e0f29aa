// More for hidden-changes.test.ts: texts in which a mention of a variable looks like a mere reading of it. A variable that is
// thought to stay as it is becomes a constant of the cut kernel, so the functions here take constants too, and do less to them.

const END = 's[T] = x + y; __syncthreads(); out[G] = s[31 - T] + x * 3 + y;';
const between = (change: string): string => `int x = blockIdx.x; int y = n; s[T] = 1; __syncthreads(); ${change} __syncthreads(); ${END}`;
/** A pointer to a constant, which each part between two barriers would recompute. */
const kept = (pointer: string): string =>
  `const int x = T * 3; const int* p = ${pointer}; s[T] = T; __syncthreads(); out[G] = s[31 - T] + *p;`;
/** An object that outlives a part. */
const object = (declaration: string, use: string): string =>
  `${declaration}; s[T] = 1; __syncthreads(); ${use} += s[31 - T]; __syncthreads(); out[G] = a.v;`;

const FIVE = `__device__ int five(int& x) { return x += 5; }
__device__ int five(const int& x) { return x; }
__device__ int five(int* x) { return *x += 5; }
__device__ int five(const int* x) { return *x; }
`;
const IN = 'struct In { int v; };\n__device__ int pool[64];\n';
const GROW =
  'enum { A = 1, B = 2 };\ntemplate <int N> __device__ int grow(int& x) { x += N; return 1; }\ntemplate <int N> __device__ int grow(const int& x) { return 2; }\n';
const MEMBER =
  'struct F { int v; template <int N> __device__ int get(int& x) { x += N; return 1; } template <int N> __device__ int get(const int& x) { return 2; } };\n';
const constructors = (head: string): string =>
  `struct B1 {}; struct B2 {}; template <class X> struct Base { X b; }; namespace ns { struct In; }
struct ${head} { int v; In() = default; __device__ In(int& x) : v(x) { x += 5; } __device__ In(const int& x) : v(x) {} };\n`;
const SUM = '__device__ int operator+(In a, In b) { return a.v + b.v; }';
const NO_MACROS_ALONE = '#ifndef __device__\n#error "For CUDA"\n#endif\n';

export const OVERLOOKED: Readonly<Record<string, readonly [outside: string, body: string]>> = {
  the_address_by_a_builtin: [FIVE, between('y = five(__builtin_addressof(x));')],
  the_address_by_a_builtin_kept: ['', kept('__builtin_addressof(x)')],
  a_word_of_an_extension: [FIVE, between('y = five(__extension__(x));')],
  a_real_part: [FIVE, between('y = five(__real__(x));')],
  either_of_an_operator: [
    `${FIVE}${IN}__device__ int& operator+(In a, In b) { return pool[a.v + b.v]; }`,
    between('In i = {1}; y = five(T & 1 ? x : (i + i));'),
  ],
  either_of_a_sign: [`${FIVE}${IN}__device__ int& operator-(In a) { return pool[a.v]; }`, between('In i = {1}; y = five(T & 1 ? x : -i);')],
  either_of_a_step: [
    `${FIVE}${IN}__device__ int& operator++(In& a, int) { return pool[a.v]; }`,
    between('In i = {1}; y = five(T & 1 ? x : i++);'),
  ],
  either_of_a_function_pointer: [
    `${FIVE}${IN}__device__ int& other(int i) { return pool[i]; } __device__ int& (*pointer)(int) = other;`,
    between('y = five(T & 1 ? x : (pointer(1)));'),
  ],
  template_arguments_with_or: [GROW, between('y += grow<A|B>(x);')],
  template_arguments_with_and: [GROW, between('y += grow<A&&B>(x);')],
  template_arguments_kept: [
    'enum { A = 1, B = 2 }; template <int N> __device__ const int* at(const int& x) { return &x; }',
    kept('at<A|B>(x)'),
  ],
  a_member_template: [MEMBER, between('F f = {1}; y += f.get<3>(x);')],
  a_member_template_by_pointer: [`${MEMBER}__device__ F g = {1};`, between('F* f = &g; y += f->get<3>(x);')],
  a_constructor_of_an_aligned_class: [constructors('__align__(8) In') + SUM, between('In i; s[T] = i + x;')],
  a_constructor_of_a_derived_class: [constructors('In : Base<int>') + SUM, between('In i; s[T] = i + x;')],
  a_constructor_of_a_class_with_two_bases: [constructors('In : B1, B2') + SUM, between('In i; s[T] = i + x;')],
  a_constructor_of_a_class_by_its_path: [`${constructors('ns::In')}namespace ns { ${SUM} }`, between('ns::In i; s[T] = i + x;')],
  an_alias_named_as_a_parameter: [
    'template <class R> __device__ void unused(R r) {}\nusing R = const int&; __device__ const int* at(R x) { return &x; }',
    kept('at(x)'),
  ],
  a_function_of_a_class_template: [
    'template <class X> struct Foo { static __device__ const int* at(X x) { return &x; } }; using F = Foo<const int&>;',
    kept('F::at(x)'),
  ],
  a_function_of_a_class_template_by_its_arguments: [
    'template <class X> struct Foo { static __device__ const int* at(X x) { return &x; } }; using C = const int&;',
    kept('Foo<C>::at(x)'),
  ],
  a_macro_that_the_preprocessor_alone_refuses: [`${NO_MACROS_ALONE}${FIVE}#define BUMP five(x)\n`, between('y = BUMP;')],
  an_address_that_the_preprocessor_alone_refuses: [`${NO_MACROS_ALONE}#define PLACE (&x)\n`, kept('PLACE')],
  a_constant_of_another_namespace: [
    'namespace away { const int step = 4; }\n__device__ int step;',
    'if (T == 0 && blockIdx.x == 0) step = 5; __syncthreads(); const int m = step; s[T] = m; __syncthreads(); out[G] = s[31 - T] + m;',
  ],
  an_object_that_knows_its_place: ['struct N { N* me; int v; __device__ N() : me(this), v(1) {} };', object('N a', 'a.me->v')],
  an_object_with_a_value_that_knows_its_place: [
    'struct N { N* me; int v; __device__ N(int x) : me(this), v(x) {} };',
    object('N a = (int)T', 'a.me->v'),
  ],
  an_object_that_counts_what_is_assigned: [
    'struct N { int v = 1; N() = default; __device__ N& operator=(const N& o) { v = o.v + 7; return *this; } };',
    object('N a', 'a.v'),
  ],
  an_object_that_is_assigned_otherwise_than_made: [
    'struct N { int v; N() = default; __device__ N(long x) : v(x) {} __device__ N& operator=(int o) { v = o * 2; return *this; } };',
    object('N a = (int)T', 'a.v'),
  ],
  objects_that_are_counted: [
    '__device__ int made; struct N { int v; __device__ N() : v(1) { atomicAdd(&made, 1); } };',
    'N a; s[T] = 1; __syncthreads(); a.v += s[31 - T]; __syncthreads(); out[G] = a.v + made;',
  ],
};
