/** Digits as strokes, for users who do not draw: points in fractions of the drawing area. */

export type Point = readonly [number, number];

/** Points of an ellipse's arc. Angles in turns, 0 at the top, clockwise. */
function arc(x: number, y: number, width: number, height: number, from = 0, to = 1): Point[] {
  return Array.from({ length: 25 }, (_, i) => {
    const angle = 2 * Math.PI * (from + ((to - from) * i) / 24);
    return [x + width * Math.sin(angle), y - height * Math.cos(angle)];
  });
}

/** The strokes of 0 to 9. */
export const EXAMPLES: readonly (readonly (readonly Point[])[])[] = [
  [arc(0.5, 0.5, 0.22, 0.38)],
  [[[0.4, 0.25], [0.52, 0.1], [0.52, 0.9]]],
  [[...arc(0.5, 0.3, 0.2, 0.18, -0.25, 0.33), [0.3, 0.88], [0.74, 0.88]]],
  [[...arc(0.48, 0.3, 0.19, 0.18, -0.2, 0.5), ...arc(0.48, 0.69, 0.22, 0.21, 0, 0.7)]],
  [[[0.55, 0.12], [0.27, 0.58], [0.75, 0.58]], [[0.6, 0.4], [0.58, 0.9]]],
  [[[0.7, 0.12], [0.35, 0.12], [0.32, 0.45], ...arc(0.48, 0.66, 0.22, 0.22, -0.05, 0.65)]],
  [[[0.5, 0.08], [0.36, 0.35], [0.32, 0.68], ...arc(0.5, 0.7, 0.18, 0.2, -0.25, 0.75)]],
  [[[0.25, 0.15], [0.72, 0.15], [0.45, 0.9]], [[0.32, 0.5], [0.7, 0.5]]],
  [[[0.72, 0.14], [0.5, 0.1], [0.32, 0.2], [0.5, 0.46], [0.7, 0.7], [0.5, 0.92], [0.3, 0.72], [0.5, 0.46], [0.68, 0.26], [0.72, 0.14]]],
  [[...arc(0.5, 0.32, 0.19, 0.2, 0.25, 1.25), [0.66, 0.6], [0.6, 0.9]]],
];
