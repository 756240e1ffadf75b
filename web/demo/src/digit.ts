/**
 * Pixels in the form on which the network was trained: the digit fills a bitmap of 32 x 32, and the ink of each block
 * of 4 x 4 is counted (E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI).
 */

export const SIDE = 8;
const BITMAP = 32;
const BLOCK = BITMAP / SIDE;
const INK = 0.5;

/** A grey picture: ink in [0, 1], row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly ink: Float32Array;
}

/** Ink of canvas pixels; a mostly light picture counts as dark ink on paper. */
export function inkOf(image: ImageData): Picture {
  const { width, height, data } = image;
  const ink = new Float32Array(width * height);
  let sum = 0;
  for (let i = 0; i < ink.length; i++) {
    const [red, green, blue] = [data[4 * i] ?? 0, data[4 * i + 1] ?? 0, data[4 * i + 2] ?? 0];
    const alpha = (data[4 * i + 3] ?? 0) / 255;
    // A transparent pixel is paper.
    ink[i] = 1 - (alpha * (0.299 * red + 0.587 * green + 0.114 * blue)) / 255 - (1 - alpha);
    sum += ink[i] ?? 0;
  }
  if (sum > ink.length / 2) ink.forEach((value, i) => (ink[i] = 1 - value));
  return { width, height, ink };
}

/** The 64 numbers in [0, 1] of a picture, null if there is no ink. */
export function digitOf(picture: Picture): number[] | null {
  const { width, height, ink } = picture;
  let [left, right, top, bottom] = [width, -1, height, -1];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if ((ink[y * width + x] ?? 0) <= INK) continue;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  }
  if (right < 0) return null;
  // The longer side fills the height. In that data set digits fill six of the eight columns, and a one fills two to
  // three.
  const span = Math.max(right - left + 1, bottom - top + 1);
  const spanX = Math.max(((right - left + 1) * 4) / 3, 0.6 * span);
  const [x0, y0] = [(left + right + 1 - spanX) / 2, (top + bottom + 1 - span) / 2];
  const values = new Array<number>(SIDE * SIDE).fill(0);
  for (let v = 0; v < BITMAP; v++) {
    for (let u = 0; u < BITMAP; u++) {
      const x = Math.floor(x0 + ((u + 0.5) * spanX) / BITMAP);
      const y = Math.floor(y0 + ((v + 0.5) * span) / BITMAP);
      const inside = x >= 0 && x < width && y >= 0 && y < height;
      if (inside && (ink[y * width + x] ?? 0) > INK) {
        const cell = Math.floor(v / BLOCK) * SIDE + Math.floor(u / BLOCK);
        values[cell] = (values[cell] ?? 0) + 1 / (BLOCK * BLOCK);
      }
    }
  }
  return values;
}
