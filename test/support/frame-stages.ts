// Stages of `overlap` whose item n is a frame of that number that goes up, through a kernel that adds 1, and down.
import { of } from 'rxjs';
import { download, f32, inout, kernel, launch, type Stage, upload } from 'millrace';

export const plusOne = kernel('plus_one', { x: inout(f32) }, ({ x }, { i }) => {
  x[i] = x[i]! + 1;
});

/** With pinned arrays of the lane. Gives the first element of the result. */
export function pinnedFrame(length: number): Stage<number, number> {
  return async (n, lane) => {
    const [x, source, target] = [lane.empty(length), lane.pinned(length), lane.pinned(length)];
    source.data[0] = n;
    lane.stream.copy(x, source);
    lane.stream.launch(plusOne, length, { x });
    await lane.stream.copy(target, x).done;
    return target.data[0]!;
  };
}

/** With ordinary arrays. */
export function ordinaryFrame(length: number): Stage<number, Float32Array> {
  return (n, lane) =>
    of(new Float32Array(length).fill(n)).pipe(
      upload(lane),
      launch(lane, plusOne, length, (x) => ({ x })),
      download(lane),
    );
}
