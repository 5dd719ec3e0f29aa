// Names of the standard library that only host code uses. Functions of the host are removed from kernel sources, but
// using-declarations, members and variables outside of functions remain, and may name these.
#pragma once

#include "mr_std_containers.h"

namespace std {

enum mr_host_name {
  cout,
  cerr,
  clog,
  cin,
  endl,
  flush,
  hex,
  dec,
  fixed,
  scientific,
  setw,
  setprecision,
  setfill,
  getline
};
enum mr_host_function { malloc, free, exit, abort, fopen, fclose, fprintf, sprintf, getenv, system, atoi, atof, rand };
enum mr_host_string { strlen, strcmp, strncpy, strcpy, memmove, memcmp, stoi, stof, stod, to_string, time, srand };

#define MR_STD_HOST_TYPE(name) \
  struct name {};
#define MR_STD_HOST_TEMPLATE(name) \
  template <class...>              \
  struct name {};
MR_STD_HOST_TYPE(string_view)
MR_STD_HOST_TYPE(ostream)
MR_STD_HOST_TYPE(istream)
MR_STD_HOST_TYPE(iostream)
MR_STD_HOST_TYPE(ofstream)
MR_STD_HOST_TYPE(ifstream)
MR_STD_HOST_TYPE(fstream)
MR_STD_HOST_TYPE(stringstream)
MR_STD_HOST_TYPE(ostringstream)
MR_STD_HOST_TYPE(istringstream)
MR_STD_HOST_TYPE(exception)
MR_STD_HOST_TYPE(runtime_error)
MR_STD_HOST_TYPE(logic_error)
MR_STD_HOST_TYPE(invalid_argument)
MR_STD_HOST_TYPE(mutex)
MR_STD_HOST_TYPE(thread)
MR_STD_HOST_TYPE(mt19937)
MR_STD_HOST_TYPE(mt19937_64)
MR_STD_HOST_TYPE(default_random_engine)
MR_STD_HOST_TYPE(random_device)
#if defined(MR_WITH_FILE)
using ::FILE;
#else
MR_STD_HOST_TYPE(FILE)
#endif
MR_STD_HOST_TEMPLATE(map)
MR_STD_HOST_TEMPLATE(multimap)
MR_STD_HOST_TEMPLATE(set)
MR_STD_HOST_TEMPLATE(unordered_map)
MR_STD_HOST_TEMPLATE(unordered_set)
MR_STD_HOST_TEMPLATE(queue)
MR_STD_HOST_TEMPLATE(priority_queue)
MR_STD_HOST_TEMPLATE(stack)
MR_STD_HOST_TEMPLATE(function)
MR_STD_HOST_TEMPLATE(unique_ptr)
MR_STD_HOST_TEMPLATE(shared_ptr)
MR_STD_HOST_TEMPLATE(weak_ptr)
MR_STD_HOST_TEMPLATE(atomic)
MR_STD_HOST_TEMPLATE(lock_guard)
MR_STD_HOST_TEMPLATE(unique_lock)
MR_STD_HOST_TEMPLATE(uniform_int_distribution)
MR_STD_HOST_TEMPLATE(uniform_real_distribution)
MR_STD_HOST_TEMPLATE(normal_distribution)
#undef MR_STD_HOST_TYPE
#undef MR_STD_HOST_TEMPLATE

}  // namespace std
