// What the peers of bench/main.ts in C++ share: they read one request a line and answer each with one line of JSON,
// {"seconds": [...]} or {"error": "..."}, so that the benchmark measures both sides in turn.
#pragma once

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace millrace::bench {

/// The first failure of the request that is being answered.
inline std::string failure;

inline void Fail(const std::string& what) {
  if (failure.empty()) failure = what;
}

inline int NextNumber(std::istringstream& line) {
  int value = 0;
  line >> value;
  return value;
}

inline std::string NextWord(std::istringstream& line) {
  std::string value;
  line >> value;
  return value;
}

/// `answer` takes the rest of a request's line; no seconds mean that there is no such request.
template <typename Answer>
int Converse(const std::string& version, Answer answer) {
  if (!failure.empty()) {
    std::printf("{\"error\": \"%s\"}\n", failure.c_str());
    return 2;
  }
  std::printf("{\"version\": \"%s\"}\n", version.c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    failure.clear();
    const std::string what = NextWord(words);
    const std::vector<double> seconds = answer(what, words);
    if (seconds.empty()) Fail("this C++ program has no request " + line);
    if (!failure.empty()) {
      std::printf("{\"error\": \"%s\"}\n", failure.c_str());
    } else {
      std::printf("{\"seconds\": [");
      for (size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", seconds[i]);
      std::printf("]}\n");
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace millrace::bench
