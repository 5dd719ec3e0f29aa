// The function objects of <functional>, for kernel sources.
#pragma once

namespace std {

#define MR_STD_OPERATION(name, result, expression)                                           \
  template <class T = void>                                                                  \
  struct name {                                                                              \
    MR_BOTH constexpr result operator()(const T& a, const T& b) const { return expression; } \
  };                                                                                         \
  template <>                                                                                \
  struct name<void> {                                                                        \
    template <class T, class U>                                                              \
    MR_BOTH constexpr auto operator()(const T& a, const U& b) const {                        \
      return expression;                                                                     \
    }                                                                                        \
  };
MR_STD_OPERATION(plus, T, a + b)
MR_STD_OPERATION(minus, T, a - b)
MR_STD_OPERATION(multiplies, T, a* b)
MR_STD_OPERATION(divides, T, a / b)
MR_STD_OPERATION(modulus, T, a % b)
MR_STD_OPERATION(bit_and, T, a& b)
MR_STD_OPERATION(bit_or, T, a | b)
MR_STD_OPERATION(bit_xor, T, a ^ b)
MR_STD_OPERATION(equal_to, bool, a == b)
MR_STD_OPERATION(not_equal_to, bool, a != b)
MR_STD_OPERATION(less, bool, a < b)
MR_STD_OPERATION(greater, bool, a > b)
MR_STD_OPERATION(less_equal, bool, a <= b)
MR_STD_OPERATION(greater_equal, bool, a >= b)
MR_STD_OPERATION(logical_and, bool, a&& b)
MR_STD_OPERATION(logical_or, bool, a || b)
#undef MR_STD_OPERATION

template <class T = void>
struct negate {
  MR_BOTH constexpr T operator()(const T& a) const { return -a; }
};
template <class T = void>
struct logical_not {
  MR_BOTH constexpr bool operator()(const T& a) const { return !a; }
};
struct identity {
  template <class T>
  MR_BOTH constexpr T&& operator()(T&& a) const {
    return static_cast<T&&>(a);
  }
};
/// The hash of integers, as GNU's library has it.
template <class T>
struct hash {
  MR_BOTH constexpr size_t operator()(T value) const { return static_cast<size_t>(value); }
};

}  // namespace std
