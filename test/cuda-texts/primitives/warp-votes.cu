// Votes and matches of a warp.
__global__ void votes(const int *x, unsigned *out) {
  const int lane = threadIdx.x;
  const unsigned mask = __activemask();
  unsigned *mine = out + 6 * lane;
  mine[0] = __all_sync(mask, x[lane] > -100);
  mine[1] = __any_sync(mask, x[lane] == 3);
  mine[2] = __ballot_sync(mask, x[lane] & 1);
  mine[3] = __match_any_sync(mask, x[lane]);
  int same;
  mine[4] = __match_all_sync(mask, x[lane] / 1000, &same);
  mine[5] = same;
}
