// Kernels for hidden-changes.test.ts whose variables something else gets hold of, in the ways that C++ has for it. Bodies of
// kernels `(int* out, int n)` with an array `s` in shared memory, of which each thread has an element; `T` is its index in the
// block, `G` that in the grid. Each changes `x`, a parameter or a counter in a way that a search for assignments overlooks.

/** Functions that the bodies call. */
export const HELPERS = `
#define HIDDEN(a) int& hidden = a; hidden += T
#define SET(a, b) ((a) = (b))
using Ref = int&;
typedef int& OldRef;
using Pointer = int*;
using Taker = void (*)(int&);
struct Holder { int& r; };
struct Link { int* p; };
struct Pair { int a; int b; };
struct Box { int v; __device__ int get() { return v++; } };
namespace away { __device__ void add(int& x) { x += 11; } }
__device__ void five(int& x) { x += 5; }
__device__ void by_alias(Ref x) { x += 5; }
template <class X> __device__ void grow(X&& x) { x += 4; }
template <class X> __device__ X* where(X& x) { return &x; }
template <class X> __device__ X* of_const(const X& x) { return (X*)&x; }
__device__ const int& same(const int& x) { return x; }
template <class X> __device__ void by_value(X x) { x += 1; }
__device__ int low(int& x, int y) { return x = y < x ? y : x; }
`;
/** Operators and constructors that take a reference, which make every expression suspect. */
export const OPERATORS = `
struct Functor { __device__ void operator()(int& x) const { x += 5; } };
struct Twice { int v; __device__ Twice(int& x) : v(x) { x += 3; } };
struct Reader { int v; };
__device__ Reader& operator>>(Reader& r, int& x) { x = r.v++; return r; }
__device__ int operator,(Reader, int& x) { return x += 9; }
__device__ int twice_of(Twice x) { return x.v; }
`;

/** Appends code that reads the changed variable after a barrier. */
const END = 's[T] = x + y; __syncthreads(); out[G] = s[31 - T] + x * 3 + y;';
const BEGIN = 'int x = blockIdx.x; int y = n; ';
/** Placed between two barriers, so that a variable mistaken for uniform would keep its old value. */
const between = (change: string): string => `${BEGIN}s[T] = 1; __syncthreads(); ${change} __syncthreads(); ${END}`;

export const EXPOSED: Readonly<Record<string, string>> = {
  either: between('(T > 3 ? x : y) = T;'),
  either_stepped: between('++(T > 3 ? x : y);'),
  either_referred_to: between('int& r = T & 1 ? x : y; r = T;'),
  either_in_a_call: between('five(T & 1 ? x : y);'),
  behind_a_comma: between('(s[T] = 2, x) = T;'),
  a_step_assigned: between('(++x) += T;'),
  an_assignment_assigned: between('(x = 3) += T;'),
  an_assignment_referred_to: between('int& r = (x += 0); r += T;'),
  an_alias: between('Ref r = x; r += T;'),
  an_old_alias: between('OldRef r = x; r += T;'),
  an_alias_in_parentheses: between('Ref r(x); r += T;'),
  an_alias_in_braces: between('Ref r{x}; r += T;'),
  auto_reference: between('auto& r = x; r += T;'),
  forwarded: between('auto&& r = x; r += T;'),
  deduced: between('decltype((x)) r = x; r += T;'),
  old_deduced: between('__typeof__(x)& r = x; r += T;'),
  a_member: between('Holder h{x}; h.r += T;'),
  a_member_by_equals: between('Holder h = {x}; h.r += T;'),
  a_temporary_member: between('Holder{x}.r += T;'),
  a_pointer_member: between('Link l = {&x}; *l.p += T;'),
  a_pointer: between('int* p = &x; *p += T;'),
  a_pointer_in_parentheses: between('int* p = &(x); *p += T;'),
  a_pointer_alias: between('Pointer p = &x; p[0] += T;'),
  a_pointer_at_once: between('*&x += T;'),
  a_pointer_to_either: between('int* p = T & 1 ? &x : &y; *p += T;'),
  a_pointer_by_a_function: between('int* p = where(x); *p += T;'),
  a_pointer_through_const: between('int* p = of_const(x); *p += T;'),
  a_pointer_cast: between('int* p = (int*)(const void*)&x; *p += T;'),
  a_reference_cast: between('(Ref)x += T;'),
  another_reference_cast: between('static_cast<int&>(x) += T;'),
  bits_cast: between('reinterpret_cast<unsigned&>(x) += T;'),
  const_cast_away: between('const int& c = x; const_cast<int&>(c) += T;'),
  a_function_pointer: between('Taker f = five; f(x);'),
  a_pointer_to_a_function: between('void (*f)(int&) = five; f(x);'),
  a_function_at_once: between('(T & 1 ? five : by_alias)(x);'),
  a_parenthesised_function: between('(five)(x);'),
  a_dereferenced_function: between('(*five)(x);'),
  a_named_namespace: between('away::add(x);'),
  from_the_top: between('::five(x);'),
  a_used_name: between('using away::add; add(x);'),
  a_parameter_alias: between('by_alias(x);'),
  a_forwarding_function: between('grow(x);'),
  template_arguments: between('by_value<int&>(x);'),
  a_binding: `${BEGIN}Pair p = {n, 4}; s[T] = 1; __syncthreads(); auto& [a, b] = p; a += T; __syncthreads(); s[T] = p.a; __syncthreads(); out[G] = s[31 - T] + p.a;`,
  a_range: `int x[2] = {n, 4}; s[T] = 1; __syncthreads(); for (int& a : x) a += T; __syncthreads(); s[T] = x[0]; __syncthreads(); out[G] = s[31 - T] + x[1];`,
  a_lambda: between('auto f = [&] { x += T; }; f();'),
  a_lambda_at_once: between('[&x] { x += T; }();'),
  a_macro: between('HIDDEN(x);'),
  a_macro_that_sets: between('SET(x, T);'),
  in_an_index: between('s[x++ & 31] = T;'),
  in_a_condition: between('if ((x += T) > 5) y++;'),
  in_a_second_operand: between('bool b = T > 3 && x++; y += b;'),
  in_a_choice: between('y = T > 3 ? x++ : --x;'),
  alternative_words: between('x and_eq T; x or_eq 64;'),
  a_switch: between('switch (x = T) { case 3: y++; }'),
  a_member_function: `Box b = {n}; s[T] = T; __syncthreads(); s[T] += b.get() * (int)T; if (T > 4) b.get(); __syncthreads(); out[G] = s[31 - T] + b.get();`,
  its_own_minimum: between('y = low(x, (int)T);'),
  a_parameter_by_alias: 'Ref r = n; s[T] = T; __syncthreads(); r += T; __syncthreads(); out[G] = s[31 - T] + n;',
  a_parameter_by_either: 'int y = 0; s[T] = T; __syncthreads(); (T > 5 ? n : y) += T; __syncthreads(); out[G] = s[31 - T] + n;',
  a_counter_by_alias:
    's[T] = 0; for (int j = 0; j < 4; j++) { __syncthreads(); Ref q = j; s[T] += q; q += 1; } __syncthreads(); out[G] = s[31 - T];',
  a_counter_by_either:
    'int y = 0; s[T] = 0; for (int j = 0; j < 4; j++) { __syncthreads(); s[T] += j; (n > 0 ? j : y) += 1; } __syncthreads(); out[G] = s[31 - T];',
  a_reference_that_is_kept: 'int x = T * 3; const int& r = same(x); s[T] = T; __syncthreads(); out[G] = s[31 - T] + r;',
  a_pointer_that_is_kept: 'const int x = T * 3; const int* p = &same(x); s[T] = T; __syncthreads(); out[G] = s[31 - T] + *p;',
  a_pointer_to_a_constant: 'const int x = T * 3; const int* p = &x; s[T] = T; __syncthreads(); out[G] = s[31 - T] + *p;',
  a_pointer_to_a_parameter: 'int* p = where(n); s[T] = T; __syncthreads(); *p += T; __syncthreads(); out[G] = s[31 - T] + n;',
  an_object_that_keeps: 'int x = T * 3; Link l; l.p = &x; s[T] = T; __syncthreads(); *l.p += 2; out[G] = s[31 - T] + *l.p;',
  declared_in_parentheses: 'int x = T; s[T] = T; { int (x) = 7; s[T] += x; } __syncthreads(); out[G] = s[31 - T] + x;',
  declared_by_a_cast_like_call: 'int x = T; s[T] = T; { Pointer (x) = out; s[T] += x == out; } __syncthreads(); out[G] = s[31 - T] + x;',
  declared_in_a_condition: 'int x = T; s[T] = T; if (int x = n) { s[T] += x; } __syncthreads(); out[G] = s[31 - T] + x;',
  declared_in_a_pointer_condition:
    'int x = T; s[T] = T; if (Pair* x = (Pair*)out) { s[T] += x == 0; } __syncthreads(); out[G] = s[31 - T] + x;',
};

/** The same after `OPERATORS`. */
export const EXPOSED_BY_OPERATORS: Readonly<Record<string, string>> = {
  an_object_that_is_called: between('Functor f; f(x);'),
  a_temporary_that_is_called: between('Functor{}(x);'),
  an_operator: between('Reader r{T}; r >> x;'),
  a_comma_operator: between('Reader r{T}; s[T] = (r, x);'),
  a_constructor: between('Twice t = x; s[T] = t.v;'),
  a_conversion: between('s[T] = twice_of(x);'),
};

/** Without barriers: `i` is an index, and a subscript must not count as one after `i` has changed. */
const row = (change: string): string => `unsigned i = G; unsigned j = 0; if (i >= 90u) return; ${change} out[i & 127] += i + j;`;
export const EXPOSED_ROWS: Readonly<Record<string, string>> = {
  row_either: row('(n > 0 ? i : j) += 1; out[i] = 3;'),
  row_alias: row('using U = unsigned&; U r = i; r += 1; out[i] = 3;'),
  row_outer_alias: row('URef r = i; r += 1; out[i] = 3;'),
  row_function: row('next(i); out[i] = 3;'),
  row_function_alias: row('next_by_alias(i); out[i] = 3;'),
  row_pointer: row('unsigned* p = &(i); ++*p; out[i] = 3;'),
  row_forwarded: row('auto&& r = i; r++; out[i] = 3;'),
  row_member: row('UHolder h = {i}; h.r++; out[i] = 3;'),
  row_shadow: row('{ unsigned i(5); out[i] += 1; }'),
  row_shadow_in_braces: row('{ unsigned i{5}; out[i] += 1; }'),
  row_shadow_in_parentheses: row('{ unsigned (i) = 5; out[i] += 1; }'),
  row_shadow_of_a_range: row('unsigned a[2] = {3, 4}; for (unsigned i : a) out[i] += 1;'),
  row_shadow_of_a_binding: row('UPair p = {3, 4}; { auto [i, k] = p; out[i] += k; }'),
  row_shadow_in_a_condition: row('if (unsigned i = 4) out[i] += 1;'),
  row_small: 'if (n > 5) return; bool i = threadIdx.x; out[i] = 3; signed char k = blockIdx.x; out[k] += 1;',
  row_small_alias: 'if (n > 5) return; Small i = threadIdx.x; out[i] = 3;',
};
export const ROW_HELPERS = `using URef = unsigned&;
typedef bool Small;
struct UHolder { unsigned& r; };
struct UPair { unsigned a, b; };
__device__ void next(unsigned& x) { x += 1; }
__device__ void next_by_alias(URef x) { x += 1; }
`;

/** Complete sources: code outside the kernel changes the meaning of the kernel's code. */
export const ODD_TEXTS: Readonly<Record<string, readonly [outside: string, body: string]>> = {
  an_operator_by_reference: [
    'struct In { int v; }; __device__ int operator+(int& x, In i) { return x += i.v; }',
    `${BEGIN}In i = {3}; s[T] = 1; __syncthreads(); s[T] = x + i; __syncthreads(); ${END}`,
  ],
  a_template_operator: [
    'struct In { int v; }; template <class X> __device__ int operator+(X& x, In i) { return x += i.v; }',
    `${BEGIN}In i = {3}; s[T] = 1; __syncthreads(); s[T] = x + i; __syncthreads(); ${END}`,
  ],
  a_constructor_by_reference: [
    'struct In { int v; __device__ In(int& x) : v(x) { x += 5; } }; __device__ int operator+(In a, In b) { return a.v + b.v; }',
    `${BEGIN}In i(y); s[T] = 1; __syncthreads(); s[T] = i + x; __syncthreads(); ${END}`,
  ],
  another_minimum: [
    'namespace own { struct Min { __device__ int operator()(int& x, int y) const { x += 5; return x < y ? x : y; } }; __device__ Min min;',
    `${BEGIN}s[T] = 1; __syncthreads(); s[T] = min(x, y); __syncthreads(); ${END}`,
  ],
  a_counting_minimum: [
    'namespace own { __device__ int max(int x, unsigned y) { return x > (int)y ? x : *(volatile int*)&y; } __device__ int count; __device__ int min(int x, int y) { return x + y + atomicAdd(&count, 1); }',
    's[T] = min(n, 1); __syncthreads(); const int m = min(n, 2); __syncthreads(); out[G] = s[31 - T] > -1 ? m > -1 : 0; if (T == 0) atomicAdd(&out[0], m - m);',
  ],
  an_object_that_adds: [
    'struct In { int v; __device__ int operator+(int x) { return v += x; } };',
    'In x = {n}; s[T] = 1; __syncthreads(); s[T] = x + T; __syncthreads(); out[G] = s[31 - T] + x.v;',
  ],
  a_name_for_functions: [
    'namespace own { __device__ void a(int& x) { x += 3; } __device__ void b(int) {} struct Call { void (*f)(int&); };',
    `${BEGIN}s[T] = 1; __syncthreads(); Call c = {a}; c.f(x); __syncthreads(); ${END}`,
  ],
  an_overload_by_alias: [
    'using Ref = int&; typedef void Change(Ref); __device__ void change(float x) {} __device__ Change change;\n__device__ void change(Ref x) { x += 3; }',
    `${BEGIN}s[T] = 1; __syncthreads(); change(x); __syncthreads(); ${END}`,
  ],
};
