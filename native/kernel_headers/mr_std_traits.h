// The traits of <type_traits>, and the types of <cstddef> and <cstdint>, for kernel sources.
#pragma once

namespace std {

using ::ptrdiff_t;
using ::size_t;
using nullptr_t = decltype(nullptr);
using max_align_t = long double;
#define MR_STD_INTEGER(bits)                \
  using int##bits##_t = mr_int##bits;       \
  using uint##bits##_t = mr_uint##bits;     \
  using int_least##bits##_t = mr_int##bits; \
  using uint_least##bits##_t = mr_uint##bits;
typedef signed char mr_int8;
typedef unsigned char mr_uint8;
typedef short mr_int16;
typedef unsigned short mr_uint16;
typedef int mr_int32;
typedef unsigned mr_uint32;
MR_STD_INTEGER(8)
MR_STD_INTEGER(16)
MR_STD_INTEGER(32)
MR_STD_INTEGER(64)
#undef MR_STD_INTEGER
using intptr_t = mr_int64;
using uintptr_t = mr_uint64;
using intmax_t = mr_int64;
using uintmax_t = mr_uint64;

template <class T, T Value>
struct integral_constant {
  static constexpr T value = Value;
  using value_type = T;
  using type = integral_constant;
  MR_BOTH constexpr operator T() const noexcept { return Value; }
  MR_BOTH constexpr T operator()() const noexcept { return Value; }
};
template <bool Value>
using bool_constant = integral_constant<bool, Value>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class...>
using void_t = void;
template <class T>
struct type_identity {
  using type = T;
};
template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool, class T, class>
struct conditional {
  using type = T;
};
template <class T, class U>
struct conditional<false, T, U> {
  using type = U;
};

/// A trait of one type that is another one for some of its forms.
#define MR_STD_CHANGE(name, ...) \
  template <class T>             \
  struct name {                  \
    using type = T;              \
  };                             \
  __VA_ARGS__                    \
  template <class T>             \
  using name##_t = typename name<T>::type;
#define MR_STD_FORM(name, form, result) \
  template <class T>                    \
  struct name<form> {                   \
    using type = result;                \
  };
MR_STD_CHANGE(remove_const, MR_STD_FORM(remove_const, const T, T))
MR_STD_CHANGE(remove_volatile, MR_STD_FORM(remove_volatile, volatile T, T))
MR_STD_CHANGE(remove_cv, MR_STD_FORM(remove_cv, const T, T) MR_STD_FORM(remove_cv, volatile T, T)
                             MR_STD_FORM(remove_cv, const volatile T, T))
MR_STD_CHANGE(remove_reference, MR_STD_FORM(remove_reference, T&, T) MR_STD_FORM(remove_reference, T&&, T))
MR_STD_CHANGE(remove_pointer,
              MR_STD_FORM(remove_pointer, T*, T) MR_STD_FORM(remove_pointer, T* const, T)
                  MR_STD_FORM(remove_pointer, T* volatile, T) MR_STD_FORM(remove_pointer, T* const volatile, T))
#undef MR_STD_FORM
#undef MR_STD_CHANGE
template <class T>
struct remove_extent {
  using type = T;
};
template <class T>
struct remove_extent<T[]> {
  using type = T;
};
template <class T, size_t Count>
struct remove_extent<T[Count]> {
  using type = T;
};
template <class T>
struct remove_cvref {
  using type = remove_cv_t<remove_reference_t<T>>;
};
template <class T>
struct add_const {
  using type = const T;
};
template <class T>
struct add_volatile {
  using type = volatile T;
};
template <class T>
struct add_cv {
  using type = const volatile T;
};
template <class T>
struct add_pointer {
  using type = remove_reference_t<T>*;
};

template <class T, class = void>
struct mr_add_reference {
  using left = T;
  using right = T;
};
template <class T>
struct mr_add_reference<T, void_t<T&>> {
  using left = T&;
  using right = T&&;
};
template <class T>
struct add_lvalue_reference {
  using type = typename mr_add_reference<T>::left;
};
template <class T>
struct add_rvalue_reference {
  using type = typename mr_add_reference<T>::right;
};
template <class T>
typename add_rvalue_reference<T>::type declval() noexcept;

/// A trait that is true or false: `name` and `name_v`.
#define MR_STD_IS(name, ...)                     \
  template <class T>                             \
  struct name : bool_constant<(__VA_ARGS__)> {}; \
  template <class T>                             \
  inline constexpr bool name##_v = (__VA_ARGS__);
#define MR_STD_IS_FORM(name, form)         \
  template <class T>                       \
  inline constexpr bool mr_##name = false; \
  template <class T>                       \
  inline constexpr bool mr_##name<form> = true;

template <class T, class U>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T, class U>
struct is_same : bool_constant<is_same_v<T, U>> {};
template <class T, class... Types>
inline constexpr bool mr_is_one_of = (is_same_v<remove_cv_t<T>, Types> || ...);

MR_STD_IS_FORM(is_const_form, const T)
MR_STD_IS_FORM(is_volatile_form, volatile T)
MR_STD_IS_FORM(is_pointer_form, T*)
MR_STD_IS_FORM(is_left_form, T&)
MR_STD_IS_FORM(is_right_form, T&&)
template <class T>
inline constexpr bool mr_is_array_form = false;
template <class T>
inline constexpr bool mr_is_array_form<T[]> = true;
template <class T, size_t Count>
inline constexpr bool mr_is_array_form<T[Count]> = true;
#undef MR_STD_IS_FORM

MR_STD_IS(is_void, is_same_v<remove_cv_t<T>, void>)
MR_STD_IS(is_null_pointer, is_same_v<remove_cv_t<T>, nullptr_t>)
MR_STD_IS(is_const, mr_is_const_form<T>)
MR_STD_IS(is_volatile, mr_is_volatile_form<T>)
MR_STD_IS(is_pointer, mr_is_pointer_form<remove_cv_t<T>>)
MR_STD_IS(is_array, mr_is_array_form<T>)
MR_STD_IS(is_lvalue_reference, mr_is_left_form<T>)
MR_STD_IS(is_rvalue_reference, mr_is_right_form<T>)
MR_STD_IS(is_reference, mr_is_left_form<T> || mr_is_right_form<T>)
MR_STD_IS(is_integral, mr_is_one_of<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
                                    unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long>)
MR_STD_IS(is_floating_point, mr_is_one_of<T, float, double, long double>)
MR_STD_IS(is_arithmetic, is_integral_v<T> || is_floating_point_v<T>)
MR_STD_IS(is_enum, __is_enum(T))
MR_STD_IS(is_class, __is_class(T))
MR_STD_IS(is_union, __is_union(T))
MR_STD_IS(is_empty, __is_empty(T))
MR_STD_IS(is_polymorphic, __is_polymorphic(T))
MR_STD_IS(is_abstract, __is_abstract(T))
MR_STD_IS(is_trivial, __is_trivial(T))
MR_STD_IS(is_trivially_copyable, __is_trivially_copyable(T))
MR_STD_IS(is_standard_layout, __is_standard_layout(T))
MR_STD_IS(is_pod, __is_trivial(T) && __is_standard_layout(T))
MR_STD_IS(is_fundamental, is_arithmetic_v<T> || is_void_v<T> || is_null_pointer_v<T>)
MR_STD_IS(is_function, !is_const_v<const T> && !is_reference_v<T>)
MR_STD_IS(is_scalar, is_arithmetic_v<T> || is_enum_v<T> || is_pointer_v<T> || is_null_pointer_v<T>)
MR_STD_IS(is_object, !is_function_v<T> && !is_reference_v<T> && !is_void_v<T>)
MR_STD_IS(is_compound, !is_fundamental_v<T>)

template <class T, bool = is_arithmetic_v<T>>
inline constexpr bool mr_is_negative = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
inline constexpr bool mr_is_negative<T, false> = false;
MR_STD_IS(is_signed, mr_is_negative<remove_cv_t<T>>)
MR_STD_IS(is_unsigned, is_arithmetic_v<T> && !mr_is_negative<remove_cv_t<T>>)

template <class T, class U>
inline constexpr bool is_base_of_v = __is_base_of(T, U);
template <class T, class U>
struct is_base_of : bool_constant<is_base_of_v<T, U>> {};

template <class To>
void mr_take(To);
template <class From, class To, class = void>
inline constexpr bool mr_converts = is_void_v<From> && is_void_v<To>;
template <class From, class To>
inline constexpr bool mr_converts<From, To, decltype(mr_take<To>(declval<From>()))> = true;
template <class From, class To>
inline constexpr bool is_convertible_v = mr_converts<From, To>;
template <class From, class To>
struct is_convertible : bool_constant<is_convertible_v<From, To>> {};

template <class T, class... Args>
inline constexpr bool is_constructible_v = __is_constructible(T, Args...);
template <class T, class... Args>
struct is_constructible : bool_constant<is_constructible_v<T, Args...>> {};
MR_STD_IS(is_default_constructible, __is_constructible(T))
MR_STD_IS(is_copy_constructible, __is_constructible(T, const T&))
#undef MR_STD_IS

template <class... Traits>
struct conjunction : bool_constant<(bool(Traits::value) && ...)> {};
template <class... Traits>
inline constexpr bool conjunction_v = (bool(Traits::value) && ...);
template <class... Traits>
struct disjunction : bool_constant<(bool(Traits::value) || ...)> {};
template <class... Traits>
inline constexpr bool disjunction_v = (bool(Traits::value) || ...);
template <class Trait>
struct negation : bool_constant<!bool(Trait::value)> {};
template <class Trait>
inline constexpr bool negation_v = !bool(Trait::value);

template <class T>
struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T>
struct rank : integral_constant<size_t, 0> {};
template <class T, size_t Count>
struct rank<T[Count]> : integral_constant<size_t, rank<T>::value + 1> {};
template <class T, unsigned At = 0>
struct extent : integral_constant<size_t, 0> {};
template <class T, size_t Count>
struct extent<T[Count], 0> : integral_constant<size_t, Count> {};
template <class T, size_t Count, unsigned At>
struct extent<T[Count], At> : extent<T, At - 1> {};

template <class T>
struct underlying_type {
  using type = __underlying_type(T);
};

/// The integer of the same size, with or without a sign.
template <size_t Size, bool IsSigned>
struct mr_integer_of;
#define MR_STD_SIZED(size, with, without) \
  template <>                             \
  struct mr_integer_of<size, true> {      \
    using type = with;                    \
  };                                      \
  template <>                             \
  struct mr_integer_of<size, false> {     \
    using type = without;                 \
  };
MR_STD_SIZED(1, signed char, unsigned char)
MR_STD_SIZED(2, short, unsigned short)
MR_STD_SIZED(4, int, unsigned)
MR_STD_SIZED(8, long, unsigned long)
#undef MR_STD_SIZED
template <class T>
struct make_signed {
  using type = typename conditional<mr_is_one_of<T, long long, unsigned long long>, long long,
                                    typename mr_integer_of<sizeof(T), true>::type>::type;
};
template <class T>
struct make_unsigned {
  using type = typename conditional<mr_is_one_of<T, long long, unsigned long long>, unsigned long long,
                                    typename mr_integer_of<sizeof(T), false>::type>::type;
};

template <class T, bool = is_array_v<T>, bool = is_function_v<T>>
struct mr_decay {
  using type = remove_cv_t<T>;
};
template <class T>
struct mr_decay<T, true, false> {
  using type = typename remove_extent<T>::type*;
};
template <class T>
struct mr_decay<T, false, true> {
  using type = T*;
};
template <class T>
struct decay {
  using type = typename mr_decay<remove_reference_t<T>>::type;
};

template <class... Types>
struct common_type {};
template <class T>
struct common_type<T> {
  using type = typename decay<T>::type;
};
template <class T, class U>
struct common_type<T, U> {
  using type = typename decay<decltype(false ? declval<T>() : declval<U>())>::type;
};
template <class T, class U, class... Types>
struct common_type<T, U, Types...> : common_type<typename common_type<T, U>::type, Types...> {};

template <class Function, class... Args>
struct invoke_result {
  using type = decltype(declval<Function>()(declval<Args>()...));
};

template <size_t Size, size_t Align = 16>
struct aligned_storage {
  struct type {
    alignas(Align) unsigned char bytes[Size];
  };
};

template <bool Condition, class T = void>
using enable_if_t = typename enable_if<Condition, T>::type;
template <bool Condition, class T, class U>
using conditional_t = typename conditional<Condition, T, U>::type;
template <class T>
using type_identity_t = typename type_identity<T>::type;
template <class T>
using remove_extent_t = typename remove_extent<T>::type;
template <class T>
using remove_cvref_t = typename remove_cvref<T>::type;
template <class T>
using add_const_t = const T;
template <class T>
using add_pointer_t = typename add_pointer<T>::type;
template <class T>
using add_lvalue_reference_t = typename add_lvalue_reference<T>::type;
template <class T>
using add_rvalue_reference_t = typename add_rvalue_reference<T>::type;
template <class T>
using underlying_type_t = typename underlying_type<T>::type;
template <class T>
using make_signed_t = typename make_signed<T>::type;
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <class T>
using decay_t = typename decay<T>::type;
template <class... Types>
using common_type_t = typename common_type<Types...>::type;
template <class Function, class... Args>
using invoke_result_t = typename invoke_result<Function, Args...>::type;
template <size_t Size, size_t Align = 16>
using aligned_storage_t = typename aligned_storage<Size, Align>::type;
template <class T>
inline constexpr size_t alignment_of_v = alignof(T);
template <class T>
inline constexpr size_t rank_v = rank<T>::value;
template <class T, unsigned At = 0>
inline constexpr size_t extent_v = extent<T, At>::value;

}  // namespace std
