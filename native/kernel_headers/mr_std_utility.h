// <utility>, <initializer_list>, <new> and the simple part of <iterator>, for kernel sources.
#pragma once

#if defined(MILLRACE_CPU_DEVICE)
namespace std {

// NVRTC has these three itself.
template <class T>
constexpr remove_reference_t<T>&& move(T&& value) noexcept {
  return static_cast<remove_reference_t<T>&&>(value);
}
template <class T>
constexpr T&& forward(remove_reference_t<T>& value) noexcept {
  return static_cast<T&&>(value);
}
template <class T>
constexpr T&& forward(remove_reference_t<T>&& value) noexcept {
  return static_cast<T&&>(value);
}

/// Compilers know its layout.
template <class T>
class initializer_list {
  const T* mr_first = nullptr;
#if defined(__clang__)
  const T* mr_last = nullptr;
  constexpr initializer_list(const T* first, const T* last) : mr_first(first), mr_last(last) {}
#else
  size_t mr_count = 0;
  constexpr initializer_list(const T* first, size_t count) : mr_first(first), mr_count(count) {}
#endif

 public:
  using value_type = T;
  using iterator = const T*;
  constexpr initializer_list() = default;
  constexpr const T* begin() const noexcept {
    return mr_first;
  }
#if defined(__clang__)
  constexpr const T* end() const noexcept {
    return mr_last;
  }
  constexpr size_t size() const noexcept {
    return static_cast<size_t>(mr_last - mr_first);
  }
#else
  constexpr const T* end() const noexcept {
    return mr_first + mr_count;
  }
  constexpr size_t size() const noexcept {
    return mr_count;
  }
#endif
};

struct nothrow_t {};

}  // namespace std
inline void* operator new(size_t, void* place) noexcept {
  return place;
}
inline void* operator new[](size_t, void* place) noexcept {
  return place;
}
#endif

namespace std {

template <class T>
MR_BOTH constexpr T* addressof(T& value) noexcept {
  return __builtin_addressof(value);
}
template <class T>
MR_BOTH constexpr const T& as_const(T& value) noexcept {
  return value;
}
template <class T>
MR_BOTH constexpr void swap(T& a, T& b) {
  T held = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(held);
}
template <class T, size_t Count>
MR_BOTH constexpr void swap(T (&a)[Count], T (&b)[Count]) {
  for (size_t i = 0; i < Count; ++i) swap(a[i], b[i]);
}
template <class T, class U = T>
MR_BOTH constexpr T exchange(T& value, U&& next) {
  T before = static_cast<T&&>(value);
  value = static_cast<U&&>(next);
  return before;
}

template <class T, T... Values>
struct integer_sequence {
  using value_type = T;
  MR_BOTH static constexpr size_t size() noexcept { return sizeof...(Values); }
};
template <size_t... Values>
using index_sequence = integer_sequence<size_t, Values...>;
template <class T, class First, class Second>
struct mr_joined;
template <class T, T... First, T... Second>
struct mr_joined<T, integer_sequence<T, First...>, integer_sequence<T, Second...>> {
  using type = integer_sequence<T, First..., static_cast<T>(sizeof...(First) + Second)...>;
};
template <class T, size_t Count>
struct mr_sequence_to
    : mr_joined<T, typename mr_sequence_to<T, Count / 2>::type, typename mr_sequence_to<T, Count - Count / 2>::type> {};
template <class T>
struct mr_sequence_to<T, 0> {
  using type = integer_sequence<T>;
};
template <class T>
struct mr_sequence_to<T, 1> {
  using type = integer_sequence<T, 0>;
};
template <class T, T Count>
using make_integer_sequence = typename mr_sequence_to<T, static_cast<size_t>(Count)>::type;
template <size_t Count>
using make_index_sequence = make_integer_sequence<size_t, Count>;
template <class... Types>
using index_sequence_for = make_index_sequence<sizeof...(Types)>;

struct piecewise_construct_t {};
struct in_place_t {};

template <class T, class U>
struct pair {
  using first_type = T;
  using second_type = U;
  T first;
  U second;
  MR_BOTH constexpr pair() : first(), second() {}
  MR_BOTH constexpr pair(const T& a, const U& b) : first(a), second(b) {}
  template <class A, class B>
  MR_BOTH constexpr pair(const pair<A, B>& other) : first(other.first), second(other.second) {}
  template <class A, class B>
  MR_BOTH constexpr pair& operator=(const pair<A, B>& other) {
    first = other.first;
    second = other.second;
    return *this;
  }
  MR_BOTH constexpr void swap(pair& other) {
    std::swap(first, other.first);
    std::swap(second, other.second);
  }
};
template <class T, class U>
pair(T, U) -> pair<T, U>;
template <class T, class U>
MR_BOTH constexpr pair<decay_t<T>, decay_t<U>> make_pair(T&& a, U&& b) {
  return pair<decay_t<T>, decay_t<U>>(static_cast<T&&>(a), static_cast<U&&>(b));
}
template <class T, class U>
MR_BOTH constexpr bool operator==(const pair<T, U>& a, const pair<T, U>& b) {
  return a.first == b.first && a.second == b.second;
}
template <class T, class U>
MR_BOTH constexpr bool operator!=(const pair<T, U>& a, const pair<T, U>& b) {
  return !(a == b);
}
template <class T, class U>
MR_BOTH constexpr bool operator<(const pair<T, U>& a, const pair<T, U>& b) {
  return a.first < b.first || (!(b.first < a.first) && a.second < b.second);
}
template <class T, class U>
MR_BOTH constexpr bool operator>(const pair<T, U>& a, const pair<T, U>& b) {
  return b < a;
}
template <class T, class U>
MR_BOTH constexpr bool operator<=(const pair<T, U>& a, const pair<T, U>& b) {
  return !(b < a);
}
template <class T, class U>
MR_BOTH constexpr bool operator>=(const pair<T, U>& a, const pair<T, U>& b) {
  return !(a < b);
}

template <class T, size_t Count>
MR_BOTH constexpr T* begin(T (&values)[Count]) noexcept {
  return values;
}
template <class T, size_t Count>
MR_BOTH constexpr T* end(T (&values)[Count]) noexcept {
  return values + Count;
}
template <class T, size_t Count>
MR_BOTH constexpr size_t size(const T (&)[Count]) noexcept {
  return Count;
}
template <class C>
MR_BOTH constexpr auto begin(C& values) -> decltype(values.begin()) {
  return values.begin();
}
template <class C>
MR_BOTH constexpr auto end(C& values) -> decltype(values.end()) {
  return values.end();
}
template <class C>
MR_BOTH constexpr auto size(const C& values) -> decltype(values.size()) {
  return values.size();
}
template <class C>
MR_BOTH constexpr auto data(C& values) -> decltype(values.data()) {
  return values.data();
}

template <class Iterator>
struct iterator_traits {
  using value_type = typename Iterator::value_type;
  using difference_type = typename Iterator::difference_type;
  using reference = typename Iterator::reference;
  using pointer = typename Iterator::pointer;
};
template <class T>
struct iterator_traits<T*> {
  using value_type = remove_cv_t<T>;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using pointer = T*;
};
template <class Iterator>
MR_BOTH constexpr ptrdiff_t distance(Iterator first, Iterator last) {
  ptrdiff_t count = 0;
  for (; first != last; ++first) ++count;
  return count;
}
template <class T>
MR_BOTH constexpr ptrdiff_t distance(T* first, T* last) {
  return last - first;
}
template <class Iterator, class Count>
MR_BOTH constexpr void advance(Iterator& at, Count by) {
  at += by;
}
template <class Iterator>
MR_BOTH constexpr Iterator next(Iterator at, ptrdiff_t by = 1) {
  return at + by;
}
template <class Iterator>
MR_BOTH constexpr Iterator prev(Iterator at, ptrdiff_t by = 1) {
  return at - by;
}

}  // namespace std
