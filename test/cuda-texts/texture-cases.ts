// The kernels of this folder that take textures and surfaces. Conformance tests launch them: test/conformance/kernels/textures.test.ts.
import { type CudaParams, f32, i16, i32, inout, input, output, surface, texture, u8 } from 'millrace';

export interface TextureText {
  /** The name of its file, without `.cu`. */
  readonly file: string;
  readonly kernel: string;
  readonly params: CudaParams;
}

const size = { width: i32, height: i32 };

export const TEXTURE_TEXTS = {
  rotate: {
    file: 'image-rotation',
    kernel: 'rotate_image',
    params: { out: output(f32), image: texture, ...size, angle: f32 },
  },
  applyTable: {
    file: 'transfer-function',
    kernel: 'apply_table',
    params: { density: input(f32), colours: output(f32), table: texture, n: i32 },
  },
  spmv: {
    file: 'sparse-gather',
    kernel: 'spmv_csr',
    params: { rows: input(i32), columns: input(i32), values: input(f32), x: texture, y: output(f32), n: i32 },
  },
  gatherPairs: {
    file: 'sparse-gather',
    kernel: 'gather_pairs',
    params: { pairs: texture, index: input(i32), out: output(i32), n: i32 },
  },
  march: {
    file: 'volume-slice',
    kernel: 'march',
    params: { volume: texture, rays: input(f32), sums: output(f32), steps: i32, count: i32 },
  },
  blurRows: { file: 'separable-blur', kernel: 'blur_rows', params: { source: texture, target: surface, ...size } },
  blurColumns: { file: 'separable-blur', kernel: 'blur_columns', params: { source: texture, target: surface, ...size } },
  brightness: { file: 'pixel-brightness', kernel: 'brightness', params: { pixels: texture, out: output(f32), ...size } },
  swapChannels: { file: 'pixel-brightness', kernel: 'swap_channels', params: { pixels: texture, out: output(u8), ...size } },
  readRow: { file: 'pixel-brightness', kernel: 'read_row', params: { values: texture, out: output(f32), n: i32 } },
  readSignedRow: { file: 'pixel-brightness', kernel: 'read_signed_row', params: { values: texture, out: output(i32), n: i32 } },
  sampleLine: { file: 'address-modes', kernel: 'sample_line', params: { line: texture, x: input(f32), out: output(f32), n: i32 } },
  samplePlane: { file: 'address-modes', kernel: 'sample_plane', params: { plane: texture, at: input(f32), out: output(f32), n: i32 } },
  lineSums: { file: 'images/line-sums-texture', kernel: 'line_sums', params: { image: texture, sums: output(f32), width: i32 } },
  upscale: { file: 'bilinear-upscale', kernel: 'upscale', params: { image: texture, out: output(f32), ...size } },
  mark: { file: 'surface-edges', kernel: 'mark', params: { plane: surface, ...size } },
  look: { file: 'surface-edges', kernel: 'look', params: { plane: surface, clamped: output(i16), zeros: inout(i16) } },
  sumTexture: { file: 'sums-around-textures', kernel: 'sum_texture', params: { values: texture, sums: output(f32), n: i32 } },
  sumInWarps: { file: 'sums-around-textures', kernel: 'sum_in_warps', params: { values: texture, sums: output(f32), n: i32 } },
  countLarge: {
    file: 'names-in-macros',
    kernel: 'count_large',
    params: { values: texture, counts: inout(i32), least: f32, n: i32 },
  },
  grow: { file: 'surface-edges', kernel: 'grow', params: { volume: surface, line: surface } },
} as const satisfies Readonly<Record<string, TextureText>>;
