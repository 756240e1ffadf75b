/**
 * Pixels in the form that a network of coloured pictures takes: a square from the middle, scaled, each channel row by
 * row, in [0, 1].
 */

/** Draws the largest square in the middle of a picture over a whole canvas. */
export function drawSquare(
  pen: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  picture: ImageBitmap,
  width: number,
  height: number,
): void {
  const side = Math.min(picture.width, picture.height);
  pen.imageSmoothingQuality = "high";
  const [left, top] = [(picture.width - side) / 2, (picture.height - side) / 2];
  pen.drawImage(picture, left, top, side, side, 0, 0, width, height);
}

/** The numbers of a picture: red, green and blue, `width * height` each. Transparent pixels are white. */
export function pixelsOf(picture: ImageBitmap, width: number, height: number): number[] {
  const pen = new OffscreenCanvas(width, height).getContext("2d") as OffscreenCanvasRenderingContext2D;
  pen.fillStyle = "white";
  pen.fillRect(0, 0, width, height);
  drawSquare(pen, picture, width, height);
  const { data } = pen.getImageData(0, 0, width, height);
  const count = width * height;
  return Array.from({ length: 3 * count }, (_, i) => (data[4 * (i % count) + Math.floor(i / count)] ?? 0) / 255);
}

/** The picture of these numbers. */
export function pictureOf(values: readonly number[], width: number, height: number): ImageData {
  const image = new ImageData(width, height);
  const count = width * height;
  values.forEach((value, i) => (image.data[4 * (i % count) + Math.floor(i / count)] = Math.round(255 * value)));
  for (let i = 0; i < count; i++) image.data[4 * i + 3] = 255;
  return image;
}
