// Everything here is there without an include.
extern "C" __global__ void short_types(const uchar *bytes, uint *sums, ushort *halves, int n) {
  uint i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= (uint)n) return;
  ulong wide = (ulong)bytes[i] << 33;
  int32_t sign = wide == 0 ? -1 : 1;
  uint64_t all = wide | (uint64_t)(uint32_t)sign;
  intptr_t address = (intptr_t)(bytes + i) - (intptr_t)bytes;
  const float *none = NULL;
  sums[i] = (uint)(all >> 32) + (uint)(all & 1u) + (uint)address + (none == NULL);
  halves[i] = (ushort)(uint16_t)(65535 - i);
}
