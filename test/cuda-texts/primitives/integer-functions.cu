// Functions on the bits of integers.
__global__ void bits(const unsigned *x, unsigned *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned v = x[i];
  unsigned *to = out + 8 * i;
  to[0] = __popc(v);
  to[1] = __clz(v);
  to[2] = __ffs(v);
  to[3] = __brev(v);
  to[4] = __byte_perm(v, ~v, 0x5410);
  to[5] = __funnelshift_l(v, 0x12345678u, 7);
  to[6] = __umulhi(v, 0x9e3779b9u);
  to[7] = (unsigned)__dp4a((int)v, 0x01020304, 100);
}
