// Asks @vladmandic/face-api, in Chromium, for the faces of the portrait of examples/photos: the numbers that test/examples/service.test.ts expects.
//   node scripts/build.mjs --with-examples && node test/support/face-reference.mjs
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { decode } from '../../build/js/examples/service/decode.js';
import { SIDE } from '../../build/js/examples/service/face-shape.js';

const { resolve } = createRequire(import.meta.url);
const model = 'tiny_face_detector_model';
const file = (name) => readFileSync(resolve(`@vladmandic/face-api/model/${name}`));
const input = new Uint8Array(SIDE * SIDE * 3);
const size = await decode({ bytes: readFileSync('examples/photos/images/astronaut.png'), side: SIDE, into: input });
const browser = await chromium.launch({ executablePath: process.argv[2] ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage();
const files = { [`${model}-weights_manifest.json`]: file(`${model}-weights_manifest.json`), [`${model}.bin`]: file(`${model}.bin`) };
await page.route('http://model/**', (route) => {
  const body = files[new URL(route.request().url()).pathname.slice(1)];
  return body === undefined ? route.fulfill({ contentType: 'text/html', body: '' }) : route.fulfill({ body });
});
await page.goto('http://model/');
await page.addScriptTag({ path: resolve('@vladmandic/face-api/dist/face-api.js') });
const faces = await page.evaluate(
  async ({ pixels, side }) => {
    const { nets, tf, tinyFaceDetector, TinyFaceDetectorOptions } = globalThis.faceapi;
    await tf.setBackend('cpu');
    await nets.tinyFaceDetector.loadFromUri('/');
    const picture = tf.tensor3d(pixels, [side, side, 3], 'int32');
    const found = await tinyFaceDetector(picture, new TinyFaceDetectorOptions({ inputSize: side }));
    return found.map(({ score, relativeBox: { x, y, width, height } }) => ({ score, x, y, width, height }));
  },
  { pixels: [...input], side: SIDE },
);
const scale = Math.max(size.width, size.height);
console.log(
  faces.map(({ score, ...box }) => ({ score, ...Object.fromEntries(Object.entries(box).map(([name, part]) => [name, scale * part])) })),
);
await browser.close();
