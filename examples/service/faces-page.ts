// The page on which one drops a picture. It sends a JPEG of what the browser shows, so any picture does that a browser can read.
export const FACES_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Find faces</title>
<style>
  body { font: 16px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 48rem; padding: 0 1rem; color: #1f2933; background: #fff; }
  label { display: block; border: 2px dashed #7b8794; border-radius: 8px; padding: 1rem; text-align: center; cursor: pointer; }
  label.over, label:focus-within { border-color: #1d5fae; background: #eef4fb; }
  input { position: absolute; opacity: 0; width: 1px; height: 1px; }
  canvas { display: block; max-width: 100%; max-height: 75vh; margin: 1rem auto; border-radius: 8px; }
  #state { min-height: 1.5em; }
</style>
<h1>Find faces</h1>
<label id="drop">Drop a picture here, paste one, or choose a file<input id="file" type="file" accept="image/*"></label>
<p id="state" role="status"></p>
<canvas id="picture" width="0" height="0" aria-label="The picture with its faces"></canvas>
<p><a href="/">Draw a digit</a></p>
<script>
const MOST = 1600;
const [drop, file, state, canvas] = ['drop', 'file', 'state', 'picture'].map((id) => document.getElementById(id));
const context = canvas.getContext('2d');
let newest = 0;
async function show(picture) {
  const number = ++newest;
  try {
    const bitmap = await createImageBitmap(picture);
    const scale = Math.min(1, MOST / Math.max(bitmap.width, bitmap.height));
    [canvas.width, canvas.height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(scale * side)));
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    state.textContent = 'Looking';
    const body = await new Promise((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.9));
    const response = await fetch('/faces', { method: 'POST', headers: { 'content-type': 'image/jpeg' }, body });
    const answer = await response.json();
    if (number !== newest) return;
    if (!response.ok) throw new Error(answer.error);
    answer.faces.forEach(mark);
    state.textContent = answer.faces.length === 1 ? '1 face' : answer.faces.length + ' faces';
  } catch (error) {
    if (number === newest) state.textContent = error.message;
  }
}
function mark({ score, x, y, width, height }) {
  const size = Math.max(12, canvas.width / 40);
  context.lineWidth = size / 5;
  context.font = size + 'px system-ui, sans-serif';
  context.strokeStyle = context.fillStyle = '#1d5fae';
  context.strokeRect(x, y, width, height);
  const text = Math.round(100 * score) + ' %';
  context.fillRect(x, y, context.measureText(text).width + size / 2, 1.3 * size);
  context.fillStyle = '#fff';
  context.fillText(text, x + size / 4, y + size);
}
file.addEventListener('change', () => { if (file.files[0]) show(file.files[0]); file.value = ''; });
document.addEventListener('paste', ({ clipboardData }) => { if (clipboardData.files[0]) show(clipboardData.files[0]); });
document.addEventListener('dragover', (event) => { event.preventDefault(); drop.classList.add('over'); });
document.addEventListener('dragleave', () => drop.classList.remove('over'));
document.addEventListener('drop', (event) => {
  event.preventDefault();
  drop.classList.remove('over');
  if (event.dataTransfer.files[0]) show(event.dataTransfer.files[0]);
});
</script>
</html>
`;
