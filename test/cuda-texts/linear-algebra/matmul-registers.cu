// A matrix product with a tile of results in the registers of each thread, and rows as float4.
#define BM 32
#define BN 32
#define BK 8
#define TM 4
#define TN 4

__global__ void __launch_bounds__((BM / TM) * (BN / TN), 2) sgemm(int M, int N, int K, const float *A, const float *B, float *C) {
  __shared__ __align__(16) float As[BK * BM];
  __shared__ __align__(16) float Bs[BK * BN];
  const int row = blockIdx.y * BM, col = blockIdx.x * BN;
  const int tid = threadIdx.x, tr = tid / (BN / TN), tc = tid % (BN / TN);
  float acc[TM][TN] = {};
  float regM[TM], regN[TN];
  for (int bk = 0; bk < K; bk += BK) {
    for (int i = tid; i < BM * BK / 4; i += blockDim.x) {
      const float4 a = reinterpret_cast<const float4 *>(&A[(row + i / (BK / 4)) * K + bk])[i % (BK / 4)];
      const int k = i % (BK / 4) * 4, m = i / (BK / 4);
      As[(k + 0) * BM + m] = a.x;
      As[(k + 1) * BM + m] = a.y;
      As[(k + 2) * BM + m] = a.z;
      As[(k + 3) * BM + m] = a.w;
    }
    for (int i = tid; i < BK * BN / 4; i += blockDim.x)
      reinterpret_cast<float4 *>(Bs)[i] = reinterpret_cast<const float4 *>(&B[(bk + i / (BN / 4)) * N + col])[i % (BN / 4)];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
#pragma unroll
      for (int i = 0; i < TM; ++i) regM[i] = As[k * BM + tr * TM + i];
#pragma unroll
      for (int j = 0; j < TN; ++j) regN[j] = Bs[k * BN + tc * TN + j];
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] += regM[i] * regN[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; ++i)
    *reinterpret_cast<float4 *>(&C[(row + tr * TM + i) * N + col + tc * TN]) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
