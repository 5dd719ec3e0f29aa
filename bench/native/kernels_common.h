// What the two programs beside bench/kernels.ts share: the data, which both sides make alike, and the conversation. For
// each line on standard input, `<kernel> <size> <launches>`, they answer with milliseconds of one launch and the sum of
// what it wrote.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// 24 bits of a hash of the place, from 0 to below 1.
inline float Fraction(uint32_t place) {
  return static_cast<float>((place * 2654435761u) >> 8) * (1.0f / 16777216.0f);
}

inline std::vector<float> Fractions(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = Fraction(static_cast<uint32_t>(i));
  return values;
}

/// From 0 to below `end`.
inline std::vector<uint8_t> Bytes(size_t count, uint32_t end) {
  std::vector<uint8_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<uint8_t>(((static_cast<uint32_t>(i) * 2654435761u) >> 8) % end);
  return values;
}

template <class T>
double Sum(const std::vector<T>& values) {
  double sum = 0;
  for (const T value : values) sum += static_cast<double>(value);
  return sum;
}

struct Answer {
  double milliseconds;
  double sum;
};

template <class Measure>
int Converse(Measure measure) {
  char name[64];
  int size = 0;
  int launches = 0;
  while (std::scanf("%63s %d %d", name, &size, &launches) == 3) {
    const Answer answer = measure(std::string(name), size, launches);
    std::printf("%.6f %.17g\n", answer.milliseconds, answer.sum);
    std::fflush(stdout);
  }
  return 0;
}
