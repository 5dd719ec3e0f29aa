// Reports to the device which synchronisation orders the threads of a block, in images that find races of shared memory
// (`MR_FINDS_RACES`). In other images these functions do nothing. race_callbacks.h reports the accesses.
#pragma once

#include "launch_abi.h"
#include "types.h"

#if defined(MR_FINDS_RACES)
#define MR_UNWATCHED static __attribute__((noinline, MR_NOT_INSTRUMENTED))

/// Of the blocks that this pool thread runs.
MR_OF_THREAD MrRaces* mr_races;

MR_UNWATCHED void mr_tell(unsigned event, unsigned long long first = 0, unsigned long long second = 0) {
  mr_need_stack();
  mr_races->event(mr_races, event, first, second);
}
/// The thread that runs from now on.
MR_UNWATCHED void mr_race_thread(unsigned rank) {
  mr_races->thread = rank;
}
/// Before any access of the entry: the last launch on this pool thread may have left from a thread.
MR_UNWATCHED void mr_race_enter(const MrLaunch* launch) {
  mr_races = launch->races;
}
/// For code of the device's own that uses shared memory.
MR_UNWATCHED void mr_race_pass(const void* from, unsigned long long bytes) {
  mr_tell(mr_race_ignore, reinterpret_cast<unsigned long long>(from), bytes);
}
MR_UNWATCHED void mr_race_release_by(const void* object) {
  mr_tell(mr_race_release, reinterpret_cast<unsigned long long>(object));
}
MR_UNWATCHED void mr_race_acquire_by(const void* object) {
  mr_tell(mr_race_acquire, reinterpret_cast<unsigned long long>(object));
}
#else
MR_INLINE void mr_tell(unsigned, unsigned long long = 0, unsigned long long = 0) {}
MR_INLINE void mr_race_thread(unsigned) {}
MR_INLINE void mr_race_enter(const MrLaunch*) {}
MR_INLINE void mr_race_pass(const void*, unsigned long long) {}
MR_INLINE void mr_race_release_by(const void*) {}
MR_INLINE void mr_race_acquire_by(const void*) {}
#endif
