// The page on which one draws a digit. It sends the picture at every stroke, as the network knows digits: 20 pixels high, its centre of mass in the middle.
export const pageOf = (hasFaces: boolean): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Draw a digit</title>
<style>
  body { font: 16px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 40rem; padding: 0 1rem; color: #1f2933; background: #fff; }
  main { display: flex; flex-wrap: wrap; gap: 2rem; }
  canvas { border: 2px solid #1f2933; border-radius: 8px; touch-action: none; cursor: crosshair; background: #000; }
  output { font-size: 5rem; line-height: 1; display: block; min-height: 5rem; }
  ol { list-style: none; padding: 0; margin: 0; }
  li { display: flex; align-items: center; gap: .5rem; font-variant-numeric: tabular-nums; }
  li span { display: block; height: .8rem; background: #1d5fae; width: 0; }
  button { font: inherit; padding: .4rem 1rem; }
  #state { min-height: 1.5em; color: #9b2c2c; }
</style>
<h1>Draw a digit</h1>
<main>
  <div>
    <canvas id="drawing" width="280" height="280" aria-label="Draw here"></canvas>
    <p><button id="clear" type="button">Clear</button></p>
  </div>
  <div><output id="digit" aria-live="polite"></output><ol id="shares"></ol></div>
</main>
<p id="state" role="status"></p>
${hasFaces ? '<p><a href="/faces">Find faces</a></p>' : ''}
<script>
const canvas = document.getElementById('drawing');
const context = canvas.getContext('2d', { willReadFrequently: true });
const [digit, shares, state] = ['digit', 'shares', 'state'].map((id) => document.getElementById(id));
const bars = Array.from({ length: 10 }, (_, n) => {
  const row = document.createElement('li');
  const bar = document.createElement('span');
  row.append(n, bar);
  shares.append(row);
  return bar;
});
let socket;
function connect() {
  socket = new WebSocket(location.origin.replace('http', 'ws') + '/draw');
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => { state.textContent = ''; send(); };
  socket.onclose = () => { state.textContent = 'The service is away. Trying again.'; setTimeout(connect, 1000); };
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(data);
    if (answer.error) { state.textContent = answer.error; setTimeout(send, 1000); return; }
    state.textContent = '';
    digit.textContent = answer.digit;
    answer.shares.forEach((share, n) => { bars[n].style.width = 8 * share + 'rem'; });
  };
}
connect();

/** 28 x 28 bytes, or undefined if nothing is drawn. */
function picture() {
  const { data, width, height } = context.getImageData(0, 0, 280, 280);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
    if (data[4 * (y * width + x)] < 40) continue;
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
  }
  if (right < 0) return undefined;
  const scale = 20 / Math.max(right - left + 1, bottom - top + 1);
  const small = new OffscreenCanvas(28, 28).getContext('2d', { willReadFrequently: true });
  const place = (x, y) => {
    small.fillStyle = '#000';
    small.fillRect(0, 0, 28, 28);
    small.imageSmoothingQuality = 'high';
    small.drawImage(canvas, left, top, right - left + 1, bottom - top + 1, x, y, (right - left + 1) * scale, (bottom - top + 1) * scale);
    const pixels = small.getImageData(0, 0, 28, 28).data;
    return Uint8Array.from({ length: 784 }, (_, at) => pixels[4 * at]);
  };
  const [x, y] = [14 - ((right - left + 1) * scale) / 2, 14 - ((bottom - top + 1) * scale) / 2];
  let [sum, across, down] = [0, 0, 0];
  place(x, y).forEach((value, at) => { sum += value; across += value * (at % 28); down += value * Math.floor(at / 28); });
  return place(x + 13.5 - across / sum, y + 13.5 - down / sum);
}
let isWaiting = false;
function send() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    const pixels = socket.readyState === WebSocket.OPEN && picture();
    if (pixels) socket.send(pixels);
  });
}

context.lineCap = context.lineJoin = 'round';
context.lineWidth = 22;
context.strokeStyle = '#fff';
let from;
const at = (event) => [event.offsetX, event.offsetY];
canvas.addEventListener('pointerdown', (event) => { from = at(event); canvas.setPointerCapture(event.pointerId); draw(event); });
canvas.addEventListener('pointermove', (event) => { if (from) draw(event); });
canvas.addEventListener('pointerup', () => { from = undefined; });
function draw(event) {
  const to = at(event);
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...to);
  context.stroke();
  from = to;
  send();
}
document.getElementById('clear').addEventListener('click', () => {
  context.clearRect(0, 0, 280, 280);
  digit.textContent = '';
  for (const bar of bars) bar.style.width = 0;
});
</script>
</html>
`;
