#pragma once

__device__ float doubled(float v) {
  return 2.0f * missing_name;
}
