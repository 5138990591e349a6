// The picture that the TV decodes: a file of the user's, or one that is drawn here. Drawing aims at the cost
// of a photograph: smooth sky, hard edges of hills, and the grain of a sensor. Grain keeps a PNG from
// shrinking to nothing. Also measures the cost of decoding it on this machine.
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PNG } from 'pngjs';
import { UsageError } from './options.js';

const width = 1920;
const height = 1080;
const grain = 3; // standard deviation of the noise, in levels of 255: a camera at ISO 400

/**
 * The bytes to decode, `{ path, bytes, width, height }`: those of `file`, or of the example's own
 * picture, which is drawn once into `folder`. Throws a UsageError for a file that is no PNG.
 */
export async function loadPicture(file, folder) {
  const path = file ?? join(folder, 'picture.png');
  if (file === undefined && !existsSync(path)) await draw(path);
  let bytes;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new UsageError(
      `--png ${path} cannot be read (${error.code}): give the path of a PNG file`,
    );
  }
  try {
    const image = PNG.sync.read(bytes);
    return { path, bytes, width: image.width, height: image.height };
  } catch (error) {
    throw new UsageError(`${path} is not a PNG that pngjs can decode: ${error.message}`);
  }
}

/** Median time of one decode in milliseconds, once the compiler has warmed up. */
export function measureDecodeMs(bytes) {
  const timesMs = [];
  const endMs = performance.now() + 3000;
  // The first two decodes run unoptimized code; three more are enough for a median.
  while (timesMs.length < 5 && (performance.now() < endMs || timesMs.length < 1)) {
    const startMs = performance.now();
    PNG.sync.read(bytes);
    timesMs.push(performance.now() - startMs);
  }
  const warm = timesMs.slice(Math.min(2, timesMs.length - 1)).sort((a, b) => a - b);
  return warm[Math.floor(warm.length / 2)];
}

/** The colour of an image from 16 × 9 points of it, as `#rrggbb`: what the wall behind a TV glows in. */
export function glowOf({ width, height, data }) {
  const sum = [0, 0, 0];
  for (let row = 0; row < 9; row++) {
    for (let column = 0; column < 16; column++) {
      const x = Math.floor(((column + 0.5) / 16) * width);
      const y = Math.floor(((row + 0.5) / 9) * height);
      for (let channel = 0; channel < 3; channel++)
        sum[channel] += data[(y * width + x) * 4 + channel];
    }
  }
  return `#${sum
    .map((total) =>
      Math.round(total / 144)
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`;
}

/** Draws the picture; whole or not at all, so that a run that was interrupted leaves no half file. */
async function draw(path) {
  const png = new PNG({ width, height });
  const noise = makeNoise(2026);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const color = colorAt(x / width, y / height);
      const shade = noise() * grain;
      const at = (y * width + x) * 4;
      for (let channel = 0; channel < 3; channel++) {
        png.data[at + channel] = Math.max(0, Math.min(255, Math.round(color[channel] + shade)));
      }
      png.data[at + 3] = 255;
    }
  }
  await writeFile(`${path}.part`, PNG.sync.write(png, { colorType: 2 }));
  await rename(`${path}.part`, path);
}

/** An evening: sky with a sun, three rows of hills. `x` and `y` in [0, 1), y down; levels of 255. */
function colorAt(x, y) {
  for (let row = 2; row >= 0; row--) {
    const ridge = 0.58 + row * 0.13 + ridgeHeight(x, row) * (0.09 - row * 0.015);
    if (y > ridge) {
      const depth = Math.min(1, (y - ridge) * 2.2);
      return mix(
        [
          [96, 84, 132],
          [52, 58, 98],
          [20, 30, 54],
        ][row],
        [14, 18, 36],
        depth,
      );
    }
  }
  const sky = mix([38, 58, 120], [250, 168, 96], (y / 0.66) ** 1.4);
  const distance = Math.hypot((x - 0.68) * (16 / 9), y - 0.44);
  if (distance < 0.055) return [255, 238, 196];
  return mix(sky, [255, 206, 140], Math.exp(-(distance - 0.055) * 7) * 0.75);
}

function ridgeHeight(x, row) {
  const at = x + row * 0.37;
  return Math.sin(at * 7) * 0.6 + Math.sin(at * 17 + row) * 0.3 + Math.sin(at * 41) * 0.1;
}

function mix(from, to, share) {
  const part = Math.max(0, Math.min(1, share));
  return from.map((level, channel) => level + (to[channel] - level) * part);
}

/** Noise that is the same on every machine: the sum of three uniform numbers, variance 1, mean 0. */
function makeNoise(seed) {
  let state = seed;
  const uniform = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  return () => (uniform() + uniform() + uniform() - 1.5) * 2;
}
