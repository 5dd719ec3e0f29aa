// assert(), according to NDEBUG at each inclusion: source may include <assert.h> more than once.
#undef assert
#if defined(NDEBUG)
#define assert(condition) ((void)0)
#elif defined(MR_ASSERTING)
#define assert(condition) ((condition) ? (void)0 : mr_assertion_failed(__LINE__, blockIdx, threadIdx))
#else
#define assert(condition) \
  ((condition) ? (void)0 : mr_assertion_ends(#condition, __FILE__, __LINE__, blockIdx, threadIdx))
#endif
