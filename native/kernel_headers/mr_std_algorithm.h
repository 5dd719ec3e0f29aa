// The algorithms of <algorithm> and <numeric> that allocate no memory, for kernel sources.
#pragma once

namespace std {

template <class T>
MR_BOTH constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
MR_BOTH constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T, class Less>
MR_BOTH constexpr const T& min(const T& a, const T& b, Less less) {
  return less(b, a) ? b : a;
}
template <class T, class Less>
MR_BOTH constexpr const T& max(const T& a, const T& b, Less less) {
  return less(a, b) ? b : a;
}
template <class T>
MR_BOTH constexpr T min(initializer_list<T> values) {
  const T* least = values.begin();
  for (const T* at = least; at != values.end(); ++at) {
    if (*at < *least) least = at;
  }
  return *least;
}
template <class T>
MR_BOTH constexpr T max(initializer_list<T> values) {
  const T* greatest = values.begin();
  for (const T* at = greatest; at != values.end(); ++at) {
    if (*greatest < *at) greatest = at;
  }
  return *greatest;
}
template <class T>
MR_BOTH constexpr pair<const T&, const T&> minmax(const T& a, const T& b) {
  return b < a ? pair<const T&, const T&>(b, a) : pair<const T&, const T&>(a, b);
}
template <class T>
MR_BOTH constexpr const T& clamp(const T& value, const T& low, const T& high) {
  return value < low ? low : high < value ? high : value;
}

template <class From, class To>
MR_BOTH constexpr To copy(From first, From last, To out) {
  for (; first != last; ++first, ++out) *out = *first;
  return out;
}
template <class From, class Count, class To>
MR_BOTH constexpr To copy_n(From first, Count count, To out) {
  for (; count > 0; --count, ++first, ++out) *out = *first;
  return out;
}
template <class Iterator, class T>
MR_BOTH constexpr void fill(Iterator first, Iterator last, const T& value) {
  for (; first != last; ++first) *first = value;
}
template <class Iterator, class Count, class T>
MR_BOTH constexpr Iterator fill_n(Iterator first, Count count, const T& value) {
  for (; count > 0; --count, ++first) *first = value;
  return first;
}
template <class Iterator>
MR_BOTH constexpr void reverse(Iterator first, Iterator last) {
  while (first != last && first != --last) std::swap(*first++, *last);
}
template <class Iterator>
MR_BOTH constexpr void iter_swap(Iterator a, Iterator b) {
  std::swap(*a, *b);
}
template <class Iterator, class Function>
MR_BOTH constexpr Function for_each(Iterator first, Iterator last, Function function) {
  for (; first != last; ++first) function(*first);
  return function;
}
template <class From, class To, class Function>
MR_BOTH constexpr To transform(From first, From last, To out, Function function) {
  for (; first != last; ++first, ++out) *out = function(*first);
  return out;
}
template <class From, class Other, class To, class Function>
MR_BOTH constexpr To transform(From first, From last, Other other, To out, Function function) {
  for (; first != last; ++first, ++other, ++out) *out = function(*first, *other);
  return out;
}

template <class Iterator, class Less>
MR_BOTH constexpr Iterator min_element(Iterator first, Iterator last, Less less) {
  Iterator found = first;
  for (; first != last; ++first) {
    if (less(*first, *found)) found = first;
  }
  return found;
}
template <class Iterator>
MR_BOTH constexpr Iterator min_element(Iterator first, Iterator last) {
  return std::min_element(first, last, [](const auto& a, const auto& b) { return a < b; });
}
template <class Iterator, class Less>
MR_BOTH constexpr Iterator max_element(Iterator first, Iterator last, Less less) {
  Iterator found = first;
  for (; first != last; ++first) {
    if (less(*found, *first)) found = first;
  }
  return found;
}
template <class Iterator>
MR_BOTH constexpr Iterator max_element(Iterator first, Iterator last) {
  return std::max_element(first, last, [](const auto& a, const auto& b) { return a < b; });
}

template <class Iterator, class T>
MR_BOTH constexpr Iterator find(Iterator first, Iterator last, const T& value) {
  while (first != last && !(*first == value)) ++first;
  return first;
}
template <class Iterator, class Test>
MR_BOTH constexpr Iterator find_if(Iterator first, Iterator last, Test test) {
  while (first != last && !test(*first)) ++first;
  return first;
}
template <class Iterator, class T>
MR_BOTH constexpr ptrdiff_t count(Iterator first, Iterator last, const T& value) {
  ptrdiff_t found = 0;
  for (; first != last; ++first) found += *first == value ? 1 : 0;
  return found;
}
template <class Iterator, class Test>
MR_BOTH constexpr ptrdiff_t count_if(Iterator first, Iterator last, Test test) {
  ptrdiff_t found = 0;
  for (; first != last; ++first) found += test(*first) ? 1 : 0;
  return found;
}
template <class Iterator, class Test>
MR_BOTH constexpr bool any_of(Iterator first, Iterator last, Test test) {
  return std::find_if(first, last, test) != last;
}
template <class Iterator, class Test>
MR_BOTH constexpr bool all_of(Iterator first, Iterator last, Test test) {
  return std::count_if(first, last, test) == std::distance(first, last);
}
template <class Iterator, class Test>
MR_BOTH constexpr bool none_of(Iterator first, Iterator last, Test test) {
  return !std::any_of(first, last, test);
}
template <class Iterator, class Other>
MR_BOTH constexpr bool equal(Iterator first, Iterator last, Other other) {
  for (; first != last; ++first, ++other) {
    if (!(*first == *other)) return false;
  }
  return true;
}

/// The first position whose value is not below `value`; with `IsAfter`, the first above it.
template <bool IsAfter, class Iterator, class T, class Less>
MR_BOTH constexpr Iterator mr_bound(Iterator first, Iterator last, const T& value, Less less) {
  for (auto count = last - first; count > 0;) {
    const auto half = count / 2;
    const bool isBelow = IsAfter ? !less(value, first[half]) : less(first[half], value);
    first = isBelow ? first + half + 1 : first;
    count = isBelow ? count - half - 1 : half;
  }
  return first;
}
template <class Iterator, class T, class Less>
MR_BOTH constexpr Iterator lower_bound(Iterator first, Iterator last, const T& value, Less less) {
  return std::mr_bound<false>(first, last, value, less);
}
template <class Iterator, class T>
MR_BOTH constexpr Iterator lower_bound(Iterator first, Iterator last, const T& value) {
  return std::mr_bound<false>(first, last, value, [](const auto& a, const auto& b) { return a < b; });
}
template <class Iterator, class T, class Less>
MR_BOTH constexpr Iterator upper_bound(Iterator first, Iterator last, const T& value, Less less) {
  return std::mr_bound<true>(first, last, value, less);
}
template <class Iterator, class T>
MR_BOTH constexpr Iterator upper_bound(Iterator first, Iterator last, const T& value) {
  return std::mr_bound<true>(first, last, value, [](const auto& a, const auto& b) { return a < b; });
}
template <class Iterator, class T>
MR_BOTH constexpr bool binary_search(Iterator first, Iterator last, const T& value) {
  const Iterator at = std::lower_bound(first, last, value);
  return at != last && !(value < *at);
}
/// By insertion: the few values of a thread need no memory for it.
template <class Iterator, class Less>
MR_BOTH constexpr void sort(Iterator first, Iterator last, Less less) {
  for (auto count = last - first, i = count - count; i < count; ++i) {
    for (auto at = i; at > 0 && less(first[at], first[at - 1]); --at) std::swap(first[at], first[at - 1]);
  }
}
template <class Iterator>
MR_BOTH constexpr void sort(Iterator first, Iterator last) {
  std::sort(first, last, [](const auto& a, const auto& b) { return a < b; });
}

template <class Iterator, class T>
MR_BOTH constexpr T accumulate(Iterator first, Iterator last, T sum) {
  for (; first != last; ++first) sum = sum + *first;
  return sum;
}
template <class Iterator, class T, class Function>
MR_BOTH constexpr T accumulate(Iterator first, Iterator last, T sum, Function function) {
  for (; first != last; ++first) sum = function(sum, *first);
  return sum;
}
template <class Iterator, class Other, class T>
MR_BOTH constexpr T inner_product(Iterator first, Iterator last, Other other, T sum) {
  for (; first != last; ++first, ++other) sum = sum + *first * *other;
  return sum;
}
template <class Iterator, class T>
MR_BOTH constexpr void iota(Iterator first, Iterator last, T value) {
  for (; first != last; ++first, ++value) *first = value;
}
template <class T>
MR_BOTH constexpr T gcd(T a, T b) {
  while (b != 0) {
    const T rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

}  // namespace std
