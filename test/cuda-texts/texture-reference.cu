// The form of textures that CUDA 12 removed.
texture<float, 2, cudaReadModeElementType> picture;

__global__ void copy_picture(float *out, int width) { out[threadIdx.x] = tex2D(picture, threadIdx.x, blockIdx.x); }
