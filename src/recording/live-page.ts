// The page of the live view: one file without dependencies. Its script draws with a canvas, and puts texts of the program only where they
// are text. Blue, orange, green and purple are those that people tell apart who do not see red and green.

/** `nonce`: of the answer's Content-Security-Policy. */
export function livePage(nonce: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Millrace live</title>
<style nonce="${nonce}">${STYLE}</style>
<header><h1>Millrace</h1><span id="program"></span><span id="state" role="status">connecting</span><button id="pause">Pause (space)</button></header>
<section id="devices"></section>
<canvas id="timeline" aria-label="Operations of each stream, the newest at the right"></canvas>
<p id="legend"></p>
<table><thead><tr><th>Stream<th class="number">Pending<th>Now<th>What it waits for</thead><tbody id="streams"></tbody></table>
<script nonce="${nonce}">${SCRIPT}</script>
</html>
`;
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --soft: #6b6b6b; --line: #d9d9d9; --row: #f5f6f7 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181b; --soft: #a0a4aa; --line: #3a3e44; --row: #1d2024 } }
body { margin: 0 auto; padding: 12px 16px; max-width: 1800px; font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
header { display: flex; gap: 14px; align-items: baseline }
h1 { font-size: 18px; margin: 0 }
#program { color: var(--soft) }
#state { margin-left: auto }
#state.bad { color: #d55e00; font-weight: 600 }
#devices { display: flex; flex-wrap: wrap; gap: 10px; margin: 10px 0 }
.device { border: 1px solid var(--line); border-radius: 6px; padding: 6px 10px }
.device.bad { border: 2px solid #d55e00 }
.device b { margin-right: 8px }
.error { color: #d55e00; max-width: 70ch }
canvas { width: 100%; display: block }
#legend { color: var(--soft); margin: 6px 0 12px }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 5px 0 14px; vertical-align: -1px }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line); vertical-align: top }
td:first-child { white-space: nowrap }
.number { text-align: right; font-variant-numeric: tabular-nums }
`;

const SCRIPT = `'use strict';
const COLOURS = { launch: '#0072b2', graph: '#0072b2', copy: '#e69f00', fill: '#999999', alloc: '#999999', free: '#999999', host: '#009e73', external: '#cc79a7', wait: '' };
const LEGEND = [['launch', 'kernels and graphs'], ['copy', 'copies'], ['fill', 'fills and memory'], ['host', 'host functions'], ['external', 'foreign libraries'], ['wait', 'waits']];
const MOST = 20000, LABELS = 190, ROW = 22, BAR = 16, TOP = 22, LATE_MS = 250;
const find = (id) => document.getElementById(id);
const canvas = find('timeline'), pen = canvas.getContext('2d');
/** By 'device stream': its slices in the order of their ends. */
const rows = new Map();
let program, seconds = 10, behindMs, isPaused = false, pausedAtMs = 0, isOver = false, hovered;

function cell(parent, tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}
for (const [kind, text] of LEGEND) {
  const key = cell(find('legend'), 'canvas', undefined, 'key');
  key.width = key.height = 12;
  paint(key.getContext('2d'), kind, 0, 0, 12, 12);
  find('legend').append(text);
}

function paint(target, kind, x, y, width, height) {
  if (COLOURS[kind]) {
    target.fillStyle = COLOURS[kind];
    target.fillRect(x, y, width, height);
    return;
  }
  // Waits are hatched: nothing runs.
  target.save();
  target.beginPath();
  target.rect(x, y, width, height);
  target.clip();
  target.strokeStyle = '#8a8f96';
  target.lineWidth = 1;
  target.beginPath();
  for (let at = Math.floor((x - height) / 5) * 5; at < x + width; at += 5) { target.moveTo(at, y + height); target.lineTo(at + height, y); }
  target.rect(x + 0.5, y + 0.5, Math.max(width - 1, 0), height - 1);
  target.stroke();
  target.restore();
}

function say(text, isBad) {
  find('state').textContent = text;
  find('state').className = isBad ? 'bad' : '';
}

function take(message) {
  if (message.seconds) { seconds = message.seconds; rows.clear(); behindMs = undefined; }
  program = message;
  // The message that was fastest tells best how the clocks differ.
  const behind = performance.now() - message.nowMs;
  behindMs = behindMs === undefined ? behind : Math.min(behind, behindMs + 0.05);
  for (const { device, streams } of message.devices) for (const { stream } of streams) row(device, stream);
  for (const { device, stream, slices } of message.rows) row(device, stream).slices.push(...slices);
  const oldest = message.nowMs - seconds * 1000 * 1.2;
  for (const one of rows.values()) {
    const first = one.slices.findIndex((slice) => slice[3] >= oldest);
    const old = first < 0 ? one.slices.length : first;
    if (!isPaused || one.slices.length > MOST) one.slices.splice(0, Math.max(isPaused ? 0 : old, one.slices.length - MOST));
    if (one.slices.length > 0) one.seenMs = message.nowMs;
  }
  for (const [key, one] of rows) {
    const isThere = message.devices.some(({ device, streams }) => device === one.device && streams.some(({ stream }) => stream === one.stream));
    if (!isThere && one.slices.length === 0 && message.nowMs - one.seenMs > 2000) rows.delete(key);
  }
  if (!isPaused) say(message.hasMissed ? 'live; this page was too slow for some operations' : 'live', false);
  if (!document.hidden) describe();
}

function row(device, stream) {
  const key = device + ' ' + stream;
  let one = rows.get(key);
  if (!one) rows.set(key, (one = { device, stream, slices: [], seenMs: program.nowMs }));
  return one;
}

const gib = (bytes) => (bytes / 2 ** 30).toFixed(1);
function describe() {
  find('program').textContent = program.title + ', process ' + program.pid;
  find('devices').replaceChildren();
  for (const { device, name, state, error, operationsPerSecond, pending, telemetry: t } of program.devices) {
    const box = cell(find('devices'), 'div', undefined, state === 'open' ? 'device' : 'device bad');
    cell(box, 'b', device);
    const facts = [name, state, Math.round(operationsPerSecond).toLocaleString('en') + ' operations/s', pending.toLocaleString('en') + ' pending'];
    if (t && t.busyPercent !== undefined) facts.push('load ' + t.busyPercent.toFixed(0) + ' %');
    if (t && t.memoryUsedBytes !== undefined) facts.push(gib(t.memoryUsedBytes) + ' of ' + gib(t.memoryTotalBytes) + ' GiB');
    if (t && t.temperatureC !== undefined) facts.push(t.temperatureC + ' °C');
    if (t && t.powerW !== undefined) facts.push(t.powerW.toFixed(0) + ' W');
    const slow = t ? t.throttleReasons.filter((reason) => reason !== 'gpu-idle') : [];
    if (slow.length > 0) facts.push('slowed by ' + slow.join(', '));
    if (t && t.xidErrors.length > 0) facts.push('XID ' + t.xidErrors.map(({ code }) => code).join(', '));
    box.append(facts.join(' · '));
    if (error) cell(box, 'div', error, 'error');
  }
  find('streams').replaceChildren();
  for (const { device, streams } of program.devices) {
    for (const { stream, pending, current, waiting } of streams) {
      const line = cell(find('streams'), 'tr');
      cell(line, 'td', device + ' ' + stream);
      cell(line, 'td', pending.toLocaleString('en'), 'number');
      cell(line, 'td', current || '');
      cell(line, 'td', waiting || (pending ? '' : 'idle'));
    }
  }
}

function draw() {
  requestAnimationFrame(draw);
  if (!program) return;
  const ink = getComputedStyle(document.body);
  const [width, height] = [canvas.clientWidth, TOP + Math.max(rows.size, 1) * ROW + 4];
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + 'px';
  }
  const endMs = isPaused || isOver ? pausedAtMs : performance.now() - behindMs - LATE_MS;
  const plot = width - LABELS;
  const at = (ms) => LABELS + plot * (1 + (ms - endMs) / (seconds * 1000));
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  const [line, soft] = [ink.getPropertyValue('--line'), ink.getPropertyValue('--soft')];
  const step = [1, 2, 5, 10, 20, 30, 60].find((one) => (plot * one) / seconds > 70) || 60;
  for (let n = 0; n <= seconds; n += step) {
    const x = at(endMs - n * 1000);
    pen.fillStyle = line;
    pen.fillRect(x, TOP - 4, 1, height);
    pen.fillStyle = soft;
    pen.textAlign = n === 0 ? 'right' : 'center';
    pen.fillText(n === 0 ? 'now' : '-' + n + ' s', n === 0 ? width : x, 9);
  }
  let n = 0;
  for (const one of [...rows.values()].sort((a, b) => (a.device + ' ' + a.stream < b.device + ' ' + b.stream ? -1 : 1))) {
    const y = TOP + n * ROW;
    if (n++ % 2 === 0) { pen.fillStyle = ink.getPropertyValue('--row'); pen.fillRect(0, y, width, ROW); }
    pen.save();
    pen.beginPath();
    pen.rect(LABELS, y, plot, ROW);
    pen.clip();
    let drawnTo = -1;
    for (const [kind, label, start, end, count] of one.slices) {
      const [x, right] = [at(start), at(end)];
      if (right < LABELS || x > width || (right < drawnTo && right - x < 1)) continue;
      const wide = Math.max(right - x, 1);
      drawnTo = x + wide;
      paint(pen, kind, x, y + (ROW - BAR) / 2, wide, BAR);
      if (count > 1 && wide > 3) { pen.fillStyle = ink.getPropertyValue('--paper'); pen.fillRect(x, y + ROW - 6, wide, 1); }
      if (wide > 30) {
        const text = count > 1 ? count + ' × ' + label : label;
        pen.textAlign = 'left';
        pen.fillStyle = kind === 'copy' || kind === 'fill' || kind === 'alloc' || kind === 'free' ? '#000' : kind === 'wait' ? ink.color : '#fff';
        if (pen.measureText(text).width < wide - 8) pen.fillText(text, Math.max(x, LABELS) + 4, y + ROW / 2);
      }
    }
    pen.restore();
    pen.fillStyle = ink.color;
    pen.textAlign = 'left';
    pen.fillText(fitted(one.device + ' ' + one.stream, LABELS - 10), 0, y + ROW / 2);
  }
}
function fitted(text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(text.slice(0, end) + '…').width > width) end--;
  return text.slice(0, end) + '…';
}

function pause() {
  isPaused = !isPaused;
  pausedAtMs = performance.now() - behindMs - LATE_MS;
  find('pause').textContent = isPaused ? 'Go on (space)' : 'Pause (space)';
  say(isPaused ? 'paused' : 'live', false);
}
find('pause').addEventListener('click', pause);
addEventListener('keydown', (event) => {
  if (event.key !== ' ' || event.target === find('pause')) return;
  event.preventDefault();
  pause();
});
const events = new EventSource('events');
events.addEventListener('message', ({ data }) => take(JSON.parse(data)));
events.addEventListener('end', () => {
  events.close();
  isOver = true;
  pausedAtMs = performance.now() - behindMs - LATE_MS;
  say('the program does not serve any more', true);
});
events.addEventListener('error', () => { if (!isOver) say('no connection to the program', true); });
requestAnimationFrame(draw);
`;
