// Containers, strings and times of the standard library for host code that remains in kernel sources: members of
// classes that kernels use, too. Their functions are declared and not defined, so a kernel that calls one does not
// link.
#pragma once

#include "mr_std_traits.h"
#include "mr_std_utility.h"

namespace std {

/// What sequences have in common.
template <class T>
struct mr_host_items {
  using value_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;
  size_t size() const;
  size_t capacity() const;
  bool empty() const;
  T* data();
  const T* data() const;
  T* begin();
  T* end();
  const T* begin() const;
  const T* end() const;
  const T* cbegin() const;
  const T* cend() const;
  T& operator[](size_t);
  const T& operator[](size_t) const;
  T& at(size_t);
  const T& at(size_t) const;
  T& front();
  const T& front() const;
  T& back();
  const T& back() const;
  void clear();
  void reserve(size_t);
  void shrink_to_fit();
  template <class... A>
  void resize(A&&...);
  template <class... A>
  void assign(A&&...);
  void push_back(const T&);
  void push_front(const T&);
  void pop_back();
  void pop_front();
  template <class... A>
  T& emplace_back(A&&...);
  template <class... A>
  T* insert(A&&...);
  template <class... A>
  T* erase(A&&...);
};

#define MR_STD_HOST_SEQUENCE(name)          \
  template <class T, class...>              \
  struct name : mr_host_items<T> {          \
    name() = default;                       \
    name(const name&) = default;            \
    name& operator=(const name&) = default; \
    template <class A, class... B>          \
    name(const A&, const B&...);            \
    void swap(name&);                       \
  };
MR_STD_HOST_SEQUENCE(vector)
MR_STD_HOST_SEQUENCE(deque)
MR_STD_HOST_SEQUENCE(list)
#undef MR_STD_HOST_SEQUENCE

struct string : mr_host_items<char> {
  static constexpr size_t npos = ~size_t{0};
  string() = default;
  string(const string&) = default;
  string& operator=(const string&) = default;
  string(const char*);
  string(const char*, size_t);
  string(size_t, char);
  string& operator=(const char*);
  const char* c_str() const;
  size_t length() const;
  string substr(size_t, size_t = npos) const;
  template <class... A>
  size_t find(A&&...) const;
  template <class... A>
  size_t rfind(A&&...) const;
  template <class... A>
  string& append(A&&...);
  template <class... A>
  string& replace(A&&...);
  int compare(const string&) const;
  template <class A>
  string& operator+=(const A&);
};
string operator+(const string&, const string&);
string operator+(const string&, const char*);
string operator+(const char*, const string&);
string operator+(const string&, char);
bool operator==(const string&, const string&);
bool operator!=(const string&, const string&);
bool operator<(const string&, const string&);

/// Of the right size, for structs and pointers that kernels take.
template <class T>
struct complex {
  using value_type = T;
  complex() = default;
  complex(const T&, const T& = T());
  T real() const;
  T imag() const;
  T mr_parts[2];
};
template <class T>
complex<T> operator+(const complex<T>&, const complex<T>&);
template <class T>
complex<T> operator-(const complex<T>&, const complex<T>&);
template <class T>
complex<T> operator*(const complex<T>&, const complex<T>&);
template <class T>
complex<T> conj(const complex<T>&);

namespace chrono {
template <class Number, class = void>
struct duration {
  using rep = Number;
  duration() = default;
  template <class A>
  duration(const A&);
  Number count() const;
};
using nanoseconds = duration<long long, char>;
using microseconds = duration<long long, short>;
using milliseconds = duration<long long, int>;
using seconds = duration<long long, long>;
using minutes = duration<long long, float>;
template <class Clock, class = void>
struct time_point {
  template <class A>
  duration<double> operator-(const A&) const;
};
template <class To, class From>
To duration_cast(const From&);
#define MR_STD_HOST_CLOCK(name)                  \
  struct name {                                  \
    using time_point = chrono::time_point<name>; \
    using duration = nanoseconds;                \
    static time_point now();                     \
  };
MR_STD_HOST_CLOCK(high_resolution_clock)
MR_STD_HOST_CLOCK(steady_clock)
MR_STD_HOST_CLOCK(system_clock)
#undef MR_STD_HOST_CLOCK
}  // namespace chrono

}  // namespace std
