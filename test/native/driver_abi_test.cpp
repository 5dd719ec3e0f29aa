// Compares native/cuda's own declarations with NVIDIA's headers: types, values, and each function of the table in the
// ABI version that is requested. No run-time tests. Built only if a toolkit is installed:
//
//   g++ -std=c++20 -fsyntax-only -I native -isystem /usr/local/cuda/include test/native/driver_abi_test.cpp
#include <cstddef>
#include <type_traits>

// This library's headers first: NVIDIA's header renames functions by macros, which must not apply to them.
#include "cuda/driver_types.h"
#include "cuda/nvrtc_library.h"

namespace {
// Macros in NVIDIA's header, whose values must be read before.
constexpr unsigned int kOurHostFlags[] = {millrace::cuda::CU_MEMHOSTREGISTER_PORTABLE,
                                          millrace::cuda::CU_MEMHOSTREGISTER_DEVICEMAP};
constexpr unsigned int kOurTextureFlags[] = {millrace::cuda::CUDA_ARRAY3D_SURFACE_LDST,
                                             millrace::cuda::CU_TRSF_READ_AS_INTEGER,
                                             millrace::cuda::CU_TRSF_NORMALIZED_COORDINATES};
constexpr unsigned int kOurAssignDefault = millrace::cuda::CU_GRAPH_COND_ASSIGN_DEFAULT;
}  // namespace

#include <cuda.h>
#include <cudaTypedefs.h>

namespace {

namespace ours = millrace::cuda;

// ── Types ────────────────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(std::is_same_v<ours::CUdevice, ::CUdevice>);
static_assert(std::is_same_v<ours::CUdeviceptr, ::CUdeviceptr>);
static_assert(sizeof(ours::CUcontext) == sizeof(::CUcontext) && std::is_pointer_v<::CUcontext>);
static_assert(sizeof(ours::CUstream) == sizeof(::CUstream) && std::is_pointer_v<::CUstream>);
static_assert(sizeof(ours::CUevent) == sizeof(::CUevent) && std::is_pointer_v<::CUevent>);
static_assert(sizeof(ours::CUmodule) == sizeof(::CUmodule) && std::is_pointer_v<::CUmodule>);
static_assert(sizeof(ours::CUfunction) == sizeof(::CUfunction) && std::is_pointer_v<::CUfunction>);
static_assert(sizeof(ours::CUmemoryPool) == sizeof(::CUmemoryPool) && std::is_pointer_v<::CUmemoryPool>);

static_assert(sizeof(ours::CUmemLocation) == sizeof(::CUmemLocation));
static_assert(offsetof(ours::CUmemLocation, type) == offsetof(::CUmemLocation, type));
static_assert(offsetof(ours::CUmemLocation, id) == offsetof(::CUmemLocation, id));
static_assert(sizeof(ours::CUmemcpyAttributes) == sizeof(::CUmemcpyAttributes));
static_assert(offsetof(ours::CUmemcpyAttributes, srcAccessOrder) == offsetof(::CUmemcpyAttributes, srcAccessOrder));
static_assert(offsetof(ours::CUmemcpyAttributes, flags) == offsetof(::CUmemcpyAttributes, flags));
static_assert(int{ours::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM} == int{::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM});
static_assert(sizeof(ours::CUmemAccessDesc) == sizeof(::CUmemAccessDesc));
static_assert(offsetof(ours::CUmemAccessDesc, location) == offsetof(::CUmemAccessDesc, location));
static_assert(offsetof(ours::CUmemAccessDesc, flags) == offsetof(::CUmemAccessDesc, flags));
static_assert(sizeof(ours::CUipcEventHandle) == sizeof(::CUipcEventHandle));
static_assert(sizeof(ours::CUipcMemHandle) == sizeof(::CUipcMemHandle));
static_assert(sizeof(ours::CUmemorytype) == sizeof(::CUmemorytype));

#define MR_SAME_FIELD(structure, field) static_assert(offsetof(ours::structure, field) == offsetof(::structure, field))
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS) == sizeof(::CUDA_KERNEL_NODE_PARAMS));
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, func);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimX);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimY);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimZ);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimX);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimY);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimZ);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kernelParams);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, extra);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kern);
MR_SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, ctx);
static_assert(sizeof(ours::CUDA_MEMSET_NODE_PARAMS) == sizeof(::CUDA_MEMSET_NODE_PARAMS));
MR_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, dst);
MR_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, pitch);
MR_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, value);
MR_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, elementSize);
MR_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, width);
MR_SAME_FIELD(CUDA_MEMSET_NODE_PARAMS, height);
static_assert(sizeof(ours::CUDA_MEMCPY3D) == sizeof(::CUDA_MEMCPY3D));
MR_SAME_FIELD(CUDA_MEMCPY3D, srcXInBytes);
MR_SAME_FIELD(CUDA_MEMCPY3D, srcMemoryType);
MR_SAME_FIELD(CUDA_MEMCPY3D, srcHost);
MR_SAME_FIELD(CUDA_MEMCPY3D, srcDevice);
MR_SAME_FIELD(CUDA_MEMCPY3D, srcPitch);
MR_SAME_FIELD(CUDA_MEMCPY3D, srcHeight);
MR_SAME_FIELD(CUDA_MEMCPY3D, dstXInBytes);
MR_SAME_FIELD(CUDA_MEMCPY3D, dstMemoryType);
MR_SAME_FIELD(CUDA_MEMCPY3D, dstDevice);
MR_SAME_FIELD(CUDA_MEMCPY3D, dstPitch);
MR_SAME_FIELD(CUDA_MEMCPY3D, dstHeight);
MR_SAME_FIELD(CUDA_MEMCPY3D, WidthInBytes);
MR_SAME_FIELD(CUDA_MEMCPY3D, Height);
MR_SAME_FIELD(CUDA_MEMCPY3D, Depth);
static_assert(sizeof(ours::CUtexObject) == sizeof(::CUtexObject) &&
              sizeof(ours::CUsurfObject) == sizeof(::CUsurfObject));
static_assert(sizeof(ours::CUDA_ARRAY3D_DESCRIPTOR) == sizeof(::CUDA_ARRAY3D_DESCRIPTOR));
MR_SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Width);
MR_SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Height);
MR_SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Depth);
MR_SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Format);
MR_SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
MR_SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags);
static_assert(sizeof(ours::CUDA_RESOURCE_DESC) == sizeof(::CUDA_RESOURCE_DESC));
MR_SAME_FIELD(CUDA_RESOURCE_DESC, resType);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.array.hArray);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.devPtr);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.format);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.numChannels);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.devPtr);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.width);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.height);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
MR_SAME_FIELD(CUDA_RESOURCE_DESC, flags);
static_assert(sizeof(ours::CUDA_TEXTURE_DESC) == sizeof(::CUDA_TEXTURE_DESC));
MR_SAME_FIELD(CUDA_TEXTURE_DESC, addressMode);
MR_SAME_FIELD(CUDA_TEXTURE_DESC, filterMode);
MR_SAME_FIELD(CUDA_TEXTURE_DESC, flags);
MR_SAME_FIELD(CUDA_TEXTURE_DESC, borderColor);
static_assert(sizeof(ours::CUlaunchAttributeValue) == sizeof(::CUlaunchAttributeValue));
static_assert(sizeof(ours::CUgraph) == sizeof(::CUgraph) && std::is_pointer_v<::CUgraph>);
static_assert(sizeof(ours::CUgraphNode) == sizeof(::CUgraphNode) && std::is_pointer_v<::CUgraphNode>);
static_assert(sizeof(ours::CUgraphExec) == sizeof(::CUgraphExec) && std::is_pointer_v<::CUgraphExec>);
#if CUDA_VERSION >= 12040  // Older headers have no conditions.
static_assert(sizeof(ours::CUgraphConditionalHandle) == sizeof(::CUgraphConditionalHandle));
static_assert(sizeof(ours::CUgraphNodeParams) == sizeof(::CUgraphNodeParams));
MR_SAME_FIELD(CUgraphNodeParams, type);
MR_SAME_FIELD(CUgraphNodeParams, conditional);
MR_SAME_FIELD(CUDA_CONDITIONAL_NODE_PARAMS, handle);
MR_SAME_FIELD(CUDA_CONDITIONAL_NODE_PARAMS, type);
MR_SAME_FIELD(CUDA_CONDITIONAL_NODE_PARAMS, size);
MR_SAME_FIELD(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
MR_SAME_FIELD(CUDA_CONDITIONAL_NODE_PARAMS, ctx);
static_assert(sizeof(ours::CUgreenCtx) == sizeof(::CUgreenCtx) && std::is_pointer_v<::CUgreenCtx>);
static_assert(sizeof(ours::CUdevResourceDesc) == sizeof(::CUdevResourceDesc));
static_assert(sizeof(ours::CUdevResource) == sizeof(::CUdevResource));
MR_SAME_FIELD(CUdevResource, type);
MR_SAME_FIELD(CUdevResource, sm);
MR_SAME_FIELD(CUdevSmResource, smCount);
MR_SAME_FIELD(CUdevSmResource, minSmPartitionSize);
#endif

// ── Values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

template <auto Ours, auto Theirs>
constexpr bool kSameValue = static_cast<long long>(Ours) == static_cast<long long>(Theirs);
#define MR_SAME_VALUE(name) static_assert(kSameValue<ours::name, ::name>)

MR_SAME_VALUE(CUDA_SUCCESS);
MR_SAME_VALUE(CUDA_ERROR_INVALID_VALUE);
MR_SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY);
MR_SAME_VALUE(CUDA_ERROR_NOT_INITIALIZED);
MR_SAME_VALUE(CUDA_ERROR_DEINITIALIZED);
MR_SAME_VALUE(CUDA_ERROR_STUB_LIBRARY);
MR_SAME_VALUE(CUDA_ERROR_DEVICE_UNAVAILABLE);
MR_SAME_VALUE(CUDA_ERROR_NO_DEVICE);
MR_SAME_VALUE(CUDA_ERROR_INVALID_DEVICE);
MR_SAME_VALUE(CUDA_ERROR_INVALID_IMAGE);
MR_SAME_VALUE(CUDA_ERROR_INVALID_CONTEXT);
MR_SAME_VALUE(CUDA_ERROR_ALREADY_MAPPED);
MR_SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU);
MR_SAME_VALUE(CUDA_ERROR_ECC_UNCORRECTABLE);
MR_SAME_VALUE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
MR_SAME_VALUE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
MR_SAME_VALUE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
MR_SAME_VALUE(CUDA_ERROR_INVALID_PTX);
MR_SAME_VALUE(CUDA_ERROR_NVLINK_UNCORRECTABLE);
MR_SAME_VALUE(CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
MR_SAME_VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
MR_SAME_VALUE(CUDA_ERROR_INVALID_SOURCE);
MR_SAME_VALUE(CUDA_ERROR_OPERATING_SYSTEM);
MR_SAME_VALUE(CUDA_ERROR_INVALID_HANDLE);
MR_SAME_VALUE(CUDA_ERROR_NOT_FOUND);
MR_SAME_VALUE(CUDA_ERROR_NOT_READY);
MR_SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS);
MR_SAME_VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
MR_SAME_VALUE(CUDA_ERROR_LAUNCH_TIMEOUT);
MR_SAME_VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED);
MR_SAME_VALUE(CUDA_ERROR_ASSERT);
MR_SAME_VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
MR_SAME_VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
MR_SAME_VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR);
MR_SAME_VALUE(CUDA_ERROR_ILLEGAL_INSTRUCTION);
MR_SAME_VALUE(CUDA_ERROR_MISALIGNED_ADDRESS);
MR_SAME_VALUE(CUDA_ERROR_INVALID_ADDRESS_SPACE);
MR_SAME_VALUE(CUDA_ERROR_INVALID_PC);
MR_SAME_VALUE(CUDA_ERROR_LAUNCH_FAILED);
MR_SAME_VALUE(CUDA_ERROR_NOT_SUPPORTED);
MR_SAME_VALUE(CUDA_ERROR_SYSTEM_NOT_READY);
MR_SAME_VALUE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
MR_SAME_VALUE(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
MR_SAME_VALUE(CUDA_ERROR_UNKNOWN);
#if CUDA_VERSION >= 13000  // Older headers do not have these yet.
MR_SAME_VALUE(CUDA_ERROR_CONTAINED);
MR_SAME_VALUE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
MR_SAME_VALUE(CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif

MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
MR_SAME_VALUE(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT);
MR_SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER);
MR_SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
MR_SAME_VALUE(CU_JIT_INPUT_CUBIN);
MR_SAME_VALUE(CU_JIT_INPUT_LIBRARY);
MR_SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
MR_SAME_VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
MR_SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_USED_MEM_HIGH);
MR_SAME_VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
MR_SAME_VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
MR_SAME_VALUE(CU_MEMORYTYPE_HOST);
MR_SAME_VALUE(CU_MEMORYTYPE_DEVICE);
MR_SAME_VALUE(CU_MEMORYTYPE_UNIFIED);
MR_SAME_VALUE(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
MR_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
MR_SAME_VALUE(CU_MEMORYTYPE_ARRAY);
MR_SAME_VALUE(CU_AD_FORMAT_UNSIGNED_INT8);
MR_SAME_VALUE(CU_AD_FORMAT_UNSIGNED_INT16);
MR_SAME_VALUE(CU_AD_FORMAT_UNSIGNED_INT32);
MR_SAME_VALUE(CU_AD_FORMAT_SIGNED_INT8);
MR_SAME_VALUE(CU_AD_FORMAT_SIGNED_INT16);
MR_SAME_VALUE(CU_AD_FORMAT_SIGNED_INT32);
MR_SAME_VALUE(CU_AD_FORMAT_HALF);
MR_SAME_VALUE(CU_AD_FORMAT_FLOAT);
MR_SAME_VALUE(CU_RESOURCE_TYPE_ARRAY);
MR_SAME_VALUE(CU_RESOURCE_TYPE_LINEAR);
MR_SAME_VALUE(CU_RESOURCE_TYPE_PITCH2D);
MR_SAME_VALUE(CU_TR_ADDRESS_MODE_WRAP);
MR_SAME_VALUE(CU_TR_ADDRESS_MODE_CLAMP);
MR_SAME_VALUE(CU_TR_ADDRESS_MODE_MIRROR);
MR_SAME_VALUE(CU_TR_ADDRESS_MODE_BORDER);
MR_SAME_VALUE(CU_TR_FILTER_MODE_POINT);
MR_SAME_VALUE(CU_TR_FILTER_MODE_LINEAR);
#if CUDA_VERSION >= 12040
MR_SAME_VALUE(CU_GRAPH_NODE_TYPE_CONDITIONAL);
MR_SAME_VALUE(CU_GRAPH_COND_TYPE_IF);
MR_SAME_VALUE(CU_GRAPH_COND_TYPE_WHILE);
MR_SAME_VALUE(CU_DEV_RESOURCE_TYPE_SM);
MR_SAME_VALUE(CU_GREEN_CTX_DEFAULT_STREAM);
#endif
MR_SAME_VALUE(CU_MEM_LOCATION_TYPE_DEVICE);
MR_SAME_VALUE(CU_MEM_ACCESS_FLAGS_PROT_NONE);
MR_SAME_VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
MR_SAME_VALUE(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
MR_SAME_VALUE(CU_GET_PROC_ADDRESS_SUCCESS);
MR_SAME_VALUE(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
MR_SAME_VALUE(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
MR_SAME_VALUE(CU_GET_PROC_ADDRESS_DEFAULT);
MR_SAME_VALUE(CU_STREAM_NON_BLOCKING);
MR_SAME_VALUE(CU_EVENT_DEFAULT);
MR_SAME_VALUE(CU_EVENT_DISABLE_TIMING);
MR_SAME_VALUE(CU_EVENT_INTERPROCESS);
MR_SAME_VALUE(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
MR_SAME_VALUE(CU_STREAM_WRITE_VALUE_DEFAULT);
static_assert(kOurTextureFlags[0] == CUDA_ARRAY3D_SURFACE_LDST && kOurTextureFlags[1] == CU_TRSF_READ_AS_INTEGER);
static_assert(kOurTextureFlags[2] == CU_TRSF_NORMALIZED_COORDINATES);
#if CUDA_VERSION >= 12040
static_assert(kOurAssignDefault == CU_GRAPH_COND_ASSIGN_DEFAULT);
#endif
static_assert(kOurHostFlags[0] == CU_MEMHOSTREGISTER_PORTABLE && kOurHostFlags[1] == CU_MEMHOSTREGISTER_DEVICEMAP);

// ── Functions ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Whether a caller passes two parameters the same way: all pointers match, enumerations match integers of their size,
/// and numbers must agree in size and sign.
template <typename T>
struct Plain {
  using type = T;
};
template <typename T>
  requires std::is_enum_v<T>
struct Plain<T> {
  using type = std::underlying_type_t<T>;
};

template <typename A, typename B>
constexpr bool IsPassedAlike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using PointeeA = std::remove_cv_t<std::remove_pointer_t<A>>;
    using PointeeB = std::remove_cv_t<std::remove_pointer_t<B>>;
    if constexpr (std::is_arithmetic_v<PointeeA> || std::is_arithmetic_v<PointeeB> || std::is_pointer_v<PointeeA>) {
      return IsPassedAlike<PointeeA, PointeeB>();
    } else {
      return true;
    }
  } else if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
    return false;
  } else {
    using PlainA = typename Plain<A>::type;
    using PlainB = typename Plain<B>::type;
    return sizeof(PlainA) == sizeof(PlainB) && std::is_signed_v<PlainA> == std::is_signed_v<PlainB>;
  }
}

template <typename Ours, typename Theirs>
constexpr bool kSameFunction = false;
template <typename... Ours, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
constexpr bool kSameFunction<ours::CUresult (*)(Ours...), ::CUresult (*)(Theirs...)> = (IsPassedAlike<Ours, Theirs>() &&
                                                                                        ...);

static_assert(sizeof(ours::CUresult) == sizeof(::CUresult));

using OurGetProcAddress = ours::CUresult (*)(const char*, void**, int, uint64_t, ours::CUdriverProcAddressQueryResult*);
static_assert(kSameFunction<OurGetProcAddress, PFN_cuGetProcAddress_v12000>);

}  // namespace

namespace millrace::cuda {
#define MR_DRIVER(name, version, presence, params) \
  static_assert(kSameFunction<CUresult(*) params, PFN_##name##_v##version>, #name " differs from NVIDIA's header");
#include "cuda/driver_functions.def"
#undef MR_DRIVER
}  // namespace millrace::cuda

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>

namespace {

template <typename Ours, typename Theirs>
constexpr bool kSameNvrtcFunction = false;
template <typename... Ours, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
constexpr bool kSameNvrtcFunction<ours::NvrtcCode (*)(Ours...), nvrtcResult (*)(Theirs...)> =
    (IsPassedAlike<Ours, Theirs>() && ...);

static_assert(sizeof(ours::NvrtcCode) == sizeof(nvrtcResult));
static_assert(kSameValue<ours::NVRTC_SUCCESS, ::NVRTC_SUCCESS>);
static_assert(kSameValue<ours::NVRTC_ERROR_COMPILATION, ::NVRTC_ERROR_COMPILATION>);

using ours::NvrtcCode;
using ours::NvrtcProgram;
#define MR_NVRTC(name, params) \
  static_assert(kSameNvrtcFunction<NvrtcCode(*) params, decltype(&::name)>, #name " differs from NVIDIA's header");
#include "cuda/nvrtc_functions.def"
#undef MR_NVRTC

}  // namespace
#endif

int main() {
  return 0;
}
