// std::tuple and std::array, for kernel sources.
#pragma once

namespace std {

// Variadic, because CUDA's libraries declare them so for NVRTC.
template <class... T>
struct tuple_size;
template <size_t At, class... T>
struct tuple_element;
template <size_t At, class T>
using tuple_element_t = typename tuple_element<At, T>::type;
template <class T>
struct tuple_size<const T> : tuple_size<T> {};
template <size_t At, class T>
struct tuple_element<At, const T> {
  using type = const tuple_element_t<At, T>;
};
template <class T>
inline constexpr size_t tuple_size_v = tuple_size<T>::value;

template <class T, class U>
struct tuple_size<pair<T, U>> : integral_constant<size_t, 2> {};
template <size_t At, class T, class U>
struct tuple_element<At, pair<T, U>> {
  using type = conditional_t<At == 0, T, U>;
};
template <size_t At, class T, class U>
MR_BOTH constexpr auto& get(pair<T, U>& of) noexcept {
  if constexpr (At == 0) {
    return of.first;
  } else {
    return of.second;
  }
}
template <size_t At, class T, class U>
MR_BOTH constexpr const auto& get(const pair<T, U>& of) noexcept {
  if constexpr (At == 0) {
    return of.first;
  } else {
    return of.second;
  }
}
template <size_t At, class T, class U>
MR_BOTH constexpr tuple_element_t<At, pair<T, U>>&& get(pair<T, U>&& of) noexcept {
  return static_cast<tuple_element_t<At, pair<T, U>>&&>(std::get<At>(of));
}

template <class T, size_t Count>
struct array {
  using value_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;
  T mr_values[Count == 0 ? 1 : Count];
  MR_BOTH constexpr T& operator[](size_t at) { return mr_values[at]; }
  MR_BOTH constexpr const T& operator[](size_t at) const { return mr_values[at]; }
  MR_BOTH constexpr T& at(size_t at) { return mr_values[at]; }
  MR_BOTH constexpr const T& at(size_t at) const { return mr_values[at]; }
  MR_BOTH constexpr T& front() { return mr_values[0]; }
  MR_BOTH constexpr const T& front() const { return mr_values[0]; }
  MR_BOTH constexpr T& back() { return mr_values[Count - 1]; }
  MR_BOTH constexpr const T& back() const { return mr_values[Count - 1]; }
  MR_BOTH constexpr T* data() { return mr_values; }
  MR_BOTH constexpr const T* data() const { return mr_values; }
  MR_BOTH constexpr T* begin() { return mr_values; }
  MR_BOTH constexpr const T* begin() const { return mr_values; }
  MR_BOTH constexpr const T* cbegin() const { return mr_values; }
  MR_BOTH constexpr T* end() { return mr_values + Count; }
  MR_BOTH constexpr const T* end() const { return mr_values + Count; }
  MR_BOTH constexpr const T* cend() const { return mr_values + Count; }
  MR_BOTH constexpr size_t size() const { return Count; }
  MR_BOTH constexpr size_t max_size() const { return Count; }
  MR_BOTH constexpr bool empty() const { return Count == 0; }
  MR_BOTH constexpr void fill(const T& value) {
    for (size_t i = 0; i < Count; ++i) mr_values[i] = value;
  }
};
template <class T, class... Others>
array(T, Others...) -> array<T, 1 + sizeof...(Others)>;
template <class T, size_t Count>
struct tuple_size<array<T, Count>> : integral_constant<size_t, Count> {};
template <size_t At, class T, size_t Count>
struct tuple_element<At, array<T, Count>> {
  using type = T;
};
template <size_t At, class T, size_t Count>
MR_BOTH constexpr T& get(array<T, Count>& of) noexcept {
  return of.mr_values[At];
}
template <size_t At, class T, size_t Count>
MR_BOTH constexpr const T& get(const array<T, Count>& of) noexcept {
  return of.mr_values[At];
}
template <size_t At, class T, size_t Count>
MR_BOTH constexpr T&& get(array<T, Count>&& of) noexcept {
  return static_cast<T&&>(of.mr_values[At]);
}

/// One element of a tuple, by its position.
template <size_t At, class T>
struct mr_element {
  T value;
};
template <class Positions, class... Types>
struct mr_elements;
template <size_t... At, class... Types>
struct mr_elements<index_sequence<At...>, Types...> : mr_element<At, Types>... {
  MR_BOTH constexpr mr_elements() : mr_element<At, Types>{}... {}
  template <class... Values>
  MR_BOTH constexpr explicit mr_elements(in_place_t, Values&&... values)
      : mr_element<At, Types>{static_cast<Values&&>(values)}... {}
};
template <size_t At, class T>
MR_BOTH constexpr T& mr_value_at(mr_element<At, T>& element) noexcept {
  return element.value;
}
template <size_t At, class T>
MR_BOTH constexpr const T& mr_value_at(const mr_element<At, T>& element) noexcept {
  return element.value;
}
template <size_t At, class T>
type_identity<T> mr_type_at(const mr_element<At, T>&);

template <class... Types>
struct tuple : mr_elements<index_sequence_for<Types...>, Types...> {
  using mr_base = mr_elements<index_sequence_for<Types...>, Types...>;
  constexpr tuple() = default;
  template <class... Values, class = enable_if_t<sizeof...(Values) == sizeof...(Types) && sizeof...(Types) != 0 &&
                                                 (is_convertible_v<Values, Types> && ...)>>
  MR_BOTH constexpr tuple(Values&&... values) : mr_base(in_place_t{}, static_cast<Values&&>(values)...) {}
  /// For std::tie: assigns what the elements refer to.
  template <class... Values>
  MR_BOTH constexpr tuple& operator=(const tuple<Values...>& other) {
    mr_assign(other, index_sequence_for<Types...>{});
    return *this;
  }
  template <class T, class U>
  MR_BOTH constexpr tuple& operator=(const pair<T, U>& other) {
    mr_value_at<0>(*this) = other.first;
    mr_value_at<1>(*this) = other.second;
    return *this;
  }
  tuple(const tuple&) = default;
  tuple& operator=(const tuple&) = default;

 private:
  template <class Other, size_t... At>
  MR_BOTH constexpr void mr_assign(const Other& other, index_sequence<At...>) {
    ((mr_value_at<At>(*this) = mr_value_at<At>(other)), ...);
  }
};
template <class... Types>
tuple(Types...) -> tuple<Types...>;
template <class... Types>
struct tuple_size<tuple<Types...>> : integral_constant<size_t, sizeof...(Types)> {};
template <size_t At, class... Types>
struct tuple_element<At, tuple<Types...>> {
  using type = typename decltype(mr_type_at<At>(declval<tuple<Types...>&>()))::type;
};
template <size_t At, class... Types>
MR_BOTH constexpr tuple_element_t<At, tuple<Types...>>& get(tuple<Types...>& of) noexcept {
  return mr_value_at<At>(of);
}
template <size_t At, class... Types>
MR_BOTH constexpr const tuple_element_t<At, tuple<Types...>>& get(const tuple<Types...>& of) noexcept {
  return mr_value_at<At>(of);
}
template <size_t At, class... Types>
MR_BOTH constexpr tuple_element_t<At, tuple<Types...>>&& get(tuple<Types...>&& of) noexcept {
  return static_cast<tuple_element_t<At, tuple<Types...>>&&>(mr_value_at<At>(of));
}
template <class... Types>
MR_BOTH constexpr tuple<decay_t<Types>...> make_tuple(Types&&... values) {
  return tuple<decay_t<Types>...>(static_cast<Types&&>(values)...);
}
template <class... Types>
MR_BOTH constexpr tuple<Types&...> tie(Types&... values) noexcept {
  return tuple<Types&...>(values...);
}
/// What is assigned to it is lost.
struct mr_ignore {
  template <class T>
  MR_BOTH constexpr const mr_ignore& operator=(const T&) const {
    return *this;
  }
};
inline constexpr mr_ignore ignore{};
template <class Function, class Tuple, size_t... At>
MR_BOTH constexpr decltype(auto) mr_apply(Function&& function, Tuple&& of, index_sequence<At...>) {
  return static_cast<Function&&>(function)(get<At>(of)...);
}
template <class Function, class Tuple>
MR_BOTH constexpr decltype(auto) apply(Function&& function, Tuple&& of) {
  return mr_apply(static_cast<Function&&>(function), of, make_index_sequence<tuple_size_v<remove_cvref_t<Tuple>>>{});
}

}  // namespace std
