// How long a thread of the runtime spins for its next work. The test gives the times.
#include "runtime/spin.h"

#include "testing.h"

namespace millrace::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = WorkRhythm::Time;

/// A thread that works whenever a pause is over.
struct Worker {
  WorkRhythm rhythm;
  Time now{std::chrono::hours(1)};

  Worker() { rhythm.Rest(now); }
  void Pause(std::chrono::nanoseconds pause, int times = 1) {
    for (int n = 0; n < times; ++n) {
      now += pause;
      rhythm.Work(now);
      rhythm.Rest(now);
    }
  }
  [[nodiscard]] bool Naps() const { return rhythm.NapUntil() > now; }
  [[nodiscard]] std::chrono::nanoseconds Spin() const { return rhythm.SpinUntil() - now; }
};

MR_TEST(a_new_thread_and_one_with_long_pauses_spin_shortly) {
  Worker worker;
  MR_EXPECT(worker.Spin() == kSpin);
  worker.Pause(milliseconds(16), 100);
  MR_EXPECT(worker.Spin() == kSpin);
  MR_EXPECT(!worker.Naps());
}

MR_TEST(a_thread_with_work_every_two_milliseconds_spins_when_it_comes) {
  Worker worker;
  worker.Pause(milliseconds(2), 20);
  MR_EXPECT(worker.rhythm.NapUntil() < worker.now + milliseconds(2));
  MR_EXPECT(worker.rhythm.NapUntil() > worker.now + microseconds(900));
  MR_EXPECT(worker.Spin() > milliseconds(3));
}

MR_TEST(no_spin_reaches_the_time_from_which_a_device_is_idle) {
  Worker worker;
  for (const auto pause : {microseconds(60), microseconds(500), microseconds(3900), microseconds(4100)}) {
    worker.Pause(pause, 50);
    MR_EXPECT(worker.Spin() <= WorkRhythm::kLongest);
    MR_EXPECT(worker.Spin() < milliseconds(10));
    MR_EXPECT(worker.rhythm.NapUntil() <= worker.rhythm.SpinUntil());
  }
}

MR_TEST(the_records_of_a_burst_do_not_count) {
  Worker worker;
  for (int n = 0; n < 20; ++n) {
    worker.Pause(milliseconds(2));
    worker.Pause(microseconds(1), 1000);
  }
  MR_EXPECT(worker.Naps());
}

MR_TEST(long_pauses_end_a_rhythm_and_short_ones_begin_it_again) {
  Worker worker;
  worker.Pause(milliseconds(2), 20);
  worker.Pause(std::chrono::seconds(1));
  MR_EXPECT(worker.Spin() == kSpin);
  worker.Pause(milliseconds(2), 8);
  MR_EXPECT(worker.Naps());
}

}  // namespace
}  // namespace millrace::testing

MR_TEST_MAIN()
