// The page: a canvas on which a mouse moves the fluid, and sliders. It says `shown` for each frame that it has drawn.
import { DEFAULTS, HEADER_BYTES, LIMITS, type Settings } from './frames.js';

const TITLES: Readonly<Record<keyof Settings, string>> = {
  force: 'Force of the mouse',
  keep: 'Dye that stays',
  gain: 'Brightness of edges',
};

const SLIDERS = (Object.keys(DEFAULTS) as (keyof Settings)[])
  .map((name) => {
    const [min, max] = LIMITS[name];
    return `<label>${TITLES[name]} <input type="range" id="${name}" min="${min}" max="${max}" step="0.001" value="${DEFAULTS[name]}"></label>`;
  })
  .join('\n  ');

export const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Live</title>
<style>
  body { font: 16px/1.4 system-ui, sans-serif; margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem; color: #1f2933; background: #fff; }
  canvas { width: 100%; border-radius: 8px; background: #000; touch-action: none; cursor: crosshair; display: block; }
  form { display: flex; flex-wrap: wrap; gap: 1rem 2rem; margin: 1rem 0; }
  label { display: flex; align-items: center; gap: .5rem; }
  #state { font-variant-numeric: tabular-nums; color: #52606d; }
</style>
<canvas id="picture" width="16" height="9" aria-label="Drag to stir"></canvas>
<form>
  ${SLIDERS}
</form>
<p id="state" role="status">Waiting for frames.</p>
<script>
const canvas = document.getElementById('picture');
const context = canvas.getContext('2d');
const state = document.getElementById('state');
// From black over blue and orange to white.
const stops = [[0, 4, 6, 20], [70, 20, 50, 140], [140, 190, 60, 90], [205, 250, 170, 60], [255, 255, 250, 235]];
const palette = new Uint32Array(256);
for (let n = 0; n < 256; n++) {
  const to = Math.max(1, stops.findIndex(([at]) => at >= n));
  const [a, b] = [stops[to - 1], stops[to]];
  const share = (n - a[0]) / (b[0] - a[0]);
  const [red, green, blue] = [1, 2, 3].map((at) => Math.round(a[at] + share * (b[at] - a[at])));
  palette[n] = (255 << 24) | (blue << 16) | (green << 8) | red;
}
let socket;
let newest;
let unshown = 0;
let shown = 0;
let since = performance.now();
function connect() {
  socket = new WebSocket(location.origin.replace('http', 'ws') + '/frames');
  socket.binaryType = 'arraybuffer';
  socket.onclose = () => { unshown = 0; state.textContent = 'The frames have ended. Trying again.'; setTimeout(connect, 1000); };
  socket.onmessage = ({ data }) => {
    newest = data;
    if (unshown++ === 0) requestAnimationFrame(draw);
  };
}
connect();
function draw() {
  const header = new DataView(newest);
  const [number, width, height] = [header.getUint32(0, true), header.getUint16(4, true), header.getUint16(6, true)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const numbers = new Uint8Array(newest, ${HEADER_BYTES});
  for (let at = 0; at < pixels.length; at++) pixels[at] = palette[numbers[at]];
  context.putImageData(image, 0, 0);
  for (; unshown > 0; unshown--) say('shown');
  shown++;
  const ms = performance.now() - since;
  if (ms < 500) return;
  state.textContent = 'Frame ' + number + ', ' + Math.round(1000 * shown / ms) + ' a second, ' + width + ' x ' + height;
  [shown, since] = [0, performance.now()];
}
function say(message) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}
let from;
const placeOf = ({ offsetX, offsetY }) => [offsetX / canvas.clientWidth, offsetY / canvas.clientHeight];
canvas.addEventListener('pointerdown', (event) => { from = placeOf(event); canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener('pointerup', () => { from = undefined; });
canvas.addEventListener('pointermove', (event) => {
  if (!from) return;
  const to = placeOf(event);
  const force = [to[0], to[1], to[0] - from[0], to[1] - from[1]];
  if (force.every((one) => Math.abs(one) <= 1)) say(force);
  from = to;
});
document.querySelector('form').addEventListener('input', ({ target }) => say({ [target.id]: Number(target.value) }));
</script>
</html>
`;
