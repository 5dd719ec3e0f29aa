// A cuFFT for machines without one, selected by MILLRACE_CUFFT: it transforms on the streams of the fake driver, by the
// definition, and checks what it gets more strictly than the real library.
//
//   MILLRACE_FAKE_CUFFT=plan:2, exec:6   the call that fails, and its status
//
// Each plan needs 512 bytes of workspace, which it writes. Transforms to real numbers overwrite what they read.
#include "cuda/cufft.h"

#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "streams.h"

namespace millrace::cuda {

namespace {

constexpr size_t kWorkspaceBytes = 512;

CufftCode Injected(const std::string& call) {
  const char* const asked = std::getenv("MILLRACE_FAKE_CUFFT");
  if (asked == nullptr || std::string(asked).rfind(call + ":", 0) != 0) return CUFFT_SUCCESS;
  return static_cast<CufftCode>(std::atoi(asked + call.size() + 1));
}

struct Layout {
  std::vector<long long> extents;
  long long stride = 0;
  long long step = 0;
};

struct Plan {
  std::vector<long long> lengths;
  Layout from;
  Layout to;
  int type = 0;
  long long batches = 0;
  CUstream stream = nullptr;
  void* workspace = nullptr;
  bool allocates = true;
};

std::map<CufftHandle, Plan>& Plans() {
  static auto& plans = *new std::map<CufftHandle, Plan>;
  return plans;
}

using Indices = std::vector<long long>;

/// Whether there is a next one, in the order of memory.
bool Next(Indices& indices, const std::vector<long long>& extents) {
  for (size_t axis = indices.size(); axis > 0; --axis) {
    if (++indices[axis - 1] < extents[axis - 1]) return true;
    indices[axis - 1] = 0;
  }
  return false;
}

struct Transform {
  Plan plan;
  std::byte* from;
  std::byte* to;
  int direction;

  [[nodiscard]] int Form() const { return plan.type & 0xf; }
  static size_t Place(const Layout& layout, long long batch, const Indices& indices) {
    long long at = 0;
    for (size_t axis = 0; axis < indices.size(); ++axis) at = at * layout.extents[axis] + indices[axis];
    return static_cast<size_t>(batch * layout.step + at * layout.stride);
  }

  template <typename Real>
  [[nodiscard]] std::complex<double> Read(long long batch, Indices indices) const {
    if (Form() == 0xa) return reinterpret_cast<const Real*>(from)[Place(plan.from, batch, indices)];
    const bool is_mirrored = Form() == 0xc && indices.back() >= plan.from.extents.back();
    if (is_mirrored) {
      for (size_t axis = 0; axis < indices.size(); ++axis)
        indices[axis] = (plan.lengths[axis] - indices[axis]) % plan.lengths[axis];
    }
    const std::complex<double> value =
        reinterpret_cast<const std::complex<Real>*>(from)[Place(plan.from, batch, indices)];
    return is_mirrored ? std::conj(value) : value;
  }

  template <typename Real>
  void RunAs() const {
    for (long long batch = 0; batch < plan.batches; ++batch) {
      Indices k(plan.lengths.size());
      const std::vector<long long>& results = Form() == 0xa ? plan.to.extents : plan.lengths;
      do {
        std::complex<double> sum = 0;
        Indices j(plan.lengths.size());
        do {
          double turns = 0;
          for (size_t axis = 0; axis < j.size(); ++axis)
            turns +=
                static_cast<double>(j[axis] * k[axis] % plan.lengths[axis]) / static_cast<double>(plan.lengths[axis]);
          sum += Read<Real>(batch, j) * std::polar(1.0, direction * 2 * M_PI * turns);
        } while (Next(j, plan.lengths));
        if (Form() == 0xc) {
          reinterpret_cast<Real*>(to)[Place(plan.to, batch, k)] = static_cast<Real>(sum.real());
        } else {
          reinterpret_cast<std::complex<Real>*>(to)[Place(plan.to, batch, k)] = std::complex<Real>(sum);
        }
      } while (Next(k, results));
    }
    if (Form() == 0xc) reinterpret_cast<std::complex<Real>*>(from)[0] = 99;
  }

  void Run() const {
    std::memset(plan.workspace, 1, kWorkspaceBytes);
    if ((plan.type & 0x40) != 0) {
      RunAs<double>();
    } else {
      RunAs<float>();
    }
  }
};

CufftCode Execute(CufftHandle handle, int form, bool is_f64, void* from, void* to, int direction) {
  const CufftCode code = Injected("exec");
  if (code != CUFFT_SUCCESS) return code;
  const auto found = Plans().find(handle);
  if (found == Plans().end()) return CUFFT_INVALID_PLAN;
  const Plan& plan = found->second;
  const auto bits = reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to);
  if ((plan.type & 0xf) != form || ((plan.type & 0x40) != 0) != is_f64 || bits % (is_f64 ? 16 : 8) != 0 ||
      plan.workspace == nullptr || plan.allocates || from == to) {
    return CUFFT_INVALID_VALUE;
  }
  auto* const transform = new Transform{plan, static_cast<std::byte*>(from), static_cast<std::byte*>(to), direction};
  const auto run = [](void* data) { static_cast<Transform*>(data)->Run(); };
  const auto drop = [](void* data) { delete static_cast<Transform*>(data); };
  const CUresult pushed = fakeCudaPush(plan.stream, "cufftExec", run, drop, transform);
  return pushed == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

}  // namespace

extern "C" {

#define MR_CUFFT(name, params) __attribute__((visibility("default"))) CufftCode name params;
#include "cuda/cufft_functions.def"
#undef MR_CUFFT

__attribute__((visibility("default"))) CufftCode cufftGetVersion(int* version) {
  *version = 11303;
  return CUFFT_SUCCESS;
}

CufftCode cufftCreate(CufftHandle* made) {
  static CufftHandle last = 0;
  *made = ++last;
  Plans()[*made] = {};
  return CUFFT_SUCCESS;
}
CufftCode cufftDestroy(CufftHandle plan) {
  return Plans().erase(plan) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
CufftCode cufftSetAutoAllocation(CufftHandle plan, int allocates) {
  Plans().at(plan).allocates = allocates != 0;
  return CUFFT_SUCCESS;
}
CufftCode cufftSetStream(CufftHandle plan, CUstream stream) {
  Plans().at(plan).stream = stream;
  return CUFFT_SUCCESS;
}
CufftCode cufftSetWorkArea(CufftHandle plan, void* workspace) {
  Plans().at(plan).workspace = workspace;
  return CUFFT_SUCCESS;
}
CufftCode cufftMakePlanMany64(CufftHandle handle, int rank, long long* lengths, long long* from_extents,
                              long long from_stride, long long from_step, long long* to_extents, long long to_stride,
                              long long to_step, int type, long long batches, size_t* workspace_bytes) {
  const CufftCode code = Injected("plan");
  if (code != CUFFT_SUCCESS) return code;
  if (rank < 1 || rank > 3 || batches < 1) return CUFFT_INVALID_SIZE;
  Plan& plan = Plans().at(handle);
  plan.lengths.assign(lengths, lengths + rank);
  plan.from = {{from_extents, from_extents + rank}, from_stride, from_step};
  plan.to = {{to_extents, to_extents + rank}, to_stride, to_step};
  plan.type = type;
  plan.batches = batches;
  *workspace_bytes = kWorkspaceBytes;
  return CUFFT_SUCCESS;
}

CufftCode cufftExecC2C(CufftHandle plan, void* from, void* to, int direction) {
  return Execute(plan, 0x9, false, from, to, direction);
}
CufftCode cufftExecR2C(CufftHandle plan, void* from, void* to) {
  return Execute(plan, 0xa, false, from, to, kCufftForward);
}
CufftCode cufftExecC2R(CufftHandle plan, void* from, void* to) {
  return Execute(plan, 0xc, false, from, to, kCufftInverse);
}
CufftCode cufftExecZ2Z(CufftHandle plan, void* from, void* to, int direction) {
  return Execute(plan, 0x9, true, from, to, direction);
}
CufftCode cufftExecD2Z(CufftHandle plan, void* from, void* to) {
  return Execute(plan, 0xa, true, from, to, kCufftForward);
}
CufftCode cufftExecZ2D(CufftHandle plan, void* from, void* to) {
  return Execute(plan, 0xc, true, from, to, kCufftInverse);
}

}  // extern "C"

}  // namespace millrace::cuda
