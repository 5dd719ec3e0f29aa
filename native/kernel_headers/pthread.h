// Only host code uses the other names of this header, and the library removes host code from kernel sources.
#pragma once

// Types of the host, which headers for both sides name in declarations.
typedef unsigned long pthread_t;
typedef unsigned pthread_key_t;
typedef int pthread_once_t;
typedef union {
  char bytes[56];
  long align;
} pthread_attr_t;
typedef union {
  char bytes[40];
  long align;
} pthread_mutex_t;
typedef union {
  char bytes[4];
  int align;
} pthread_mutexattr_t;
typedef union {
  char bytes[48];
  long align;
} pthread_cond_t;
typedef union {
  char bytes[4];
  int align;
} pthread_condattr_t;
typedef union {
  char bytes[32];
  long align;
} pthread_barrier_t;
