// The patterns of the families, as the canvas fills with them.
import type { Pattern } from './palette.js';

const SIZE = 8;

/** A pattern in the colour of the text, so faint that text on it stays readable. */
export function patternOf(context: CanvasRenderingContext2D, pattern: Pattern, colour: string, ratio: number): CanvasPattern | undefined {
  if (pattern === 'none') return undefined;
  const tile = document.createElement('canvas');
  tile.width = tile.height = SIZE * ratio;
  const draw = tile.getContext('2d')!;
  draw.scale(ratio, ratio);
  draw.globalAlpha = 0.3;
  draw.strokeStyle = draw.fillStyle = colour;
  draw.lineWidth = 1.2;
  const stroke = (...lines: readonly (readonly [number, number, number, number])[]): void => {
    draw.beginPath();
    for (const [x, y, toX, toY] of lines) {
      draw.moveTo(x, y);
      draw.lineTo(toX, toY);
    }
    draw.stroke();
  };
  const dot = (x: number, y: number, radius: number): void => {
    draw.beginPath();
    draw.arc(x, y, radius, 0, 2 * Math.PI);
    if (pattern === 'rings') draw.stroke();
    else draw.fill();
  };
  switch (pattern) {
    case 'rising':
      stroke([-2, 2, 2, -2], [0, SIZE, SIZE, 0], [SIZE - 2, SIZE + 2, SIZE + 2, SIZE - 2]);
      break;
    case 'falling':
      stroke([-2, SIZE - 2, 2, SIZE + 2], [0, 0, SIZE, SIZE], [SIZE - 2, -2, SIZE + 2, 2]);
      break;
    case 'lines':
      stroke([0, 2, SIZE, 2], [0, 6, SIZE, 6]);
      break;
    case 'columns':
      stroke([4, 0, 4, SIZE]);
      break;
    case 'grid':
      stroke([0, 4, SIZE, 4], [4, 0, 4, SIZE]);
      break;
    case 'dots':
      dot(2, 2, 1.1);
      dot(6, 6, 1.1);
      break;
    case 'rings':
      dot(4, 4, 2.2);
  }
  const made = context.createPattern(tile, 'repeat');
  made?.setTransform(new DOMMatrix().scale(1 / ratio));
  return made ?? undefined;
}
