/** The same request as the visitor and as the server sees it: numbers here, a ciphertext there, drawn as it is. */

import type { Answer } from "./client/dist/index.js";
import { bytes, element } from "./text.js";

/** Draws the numbers that were encrypted, and the bytes that the server got instead. */
export function showViews(thing: string, answer: Answer, label: string): void {
  const [mine, theirs] = [element<HTMLCanvasElement>("own"), element<HTMLCanvasElement>("theirs")];
  const preview = element<HTMLCanvasElement>("preview");
  [mine.width, mine.height] = [preview.width, preview.height];
  mine.getContext("2d")?.drawImage(preview, 0, 0);
  mine.setAttribute("aria-label", `Your ${thing}, as the numbers that were encrypted`);
  const side = Math.floor(Math.sqrt(answer.sample.length));
  [theirs.width, theirs.height] = [side, side];
  const image = new ImageData(side, side);
  for (let i = 0; i < side * side; i++) image.data.set([0, 0, 0].fill(answer.sample[i] ?? 0).concat(255), 4 * i);
  theirs.getContext("2d")?.putImageData(image, 0, 0);
  theirs.setAttribute("aria-label", "Noise: the first bytes of the ciphertext, one per pixel");
  element("own-note").textContent = `${preview.width * preview.height} pixels, and the answer: ${label}.`;
  element("theirs-note").textContent =
    `${bytes(answer.sent)} that look random. The picture shows ${(side * side).toLocaleString("en")} of these bytes, one per pixel. The answer looks the same.`;
  element("views-section").hidden = false;
}

export function hideViews(): void {
  element("views-section").hidden = true;
}
