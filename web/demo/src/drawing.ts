/** The drawing area: one brush, moved by a pointer or by arrow keys; dropped or chosen pictures; examples. */

import { digitOf, inkOf, SIDE } from "./digit.js";
import { EXAMPLES } from "./examples.js";
import { drawSquare, pictureOf, pixelsOf } from "./picture.js";
import { announce, element } from "./text.js";

const MAX_PICTURE_BYTES = 16e6;
const BRUSH = 26;
const STEP = 8;

type Pen = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;
type Place = { x: number; y: number };

const canvas = element<HTMLCanvasElement>("canvas");
const preview = element<HTMLCanvasElement>("preview");
const example = element<HTMLSelectElement>("example");

/** The drawing, or the chosen picture. */
export class Drawing {
  /** Width and height of the coloured pictures of the model; null for digits. */
  #coloured: readonly [number, number] | null = null;
  readonly #brush = { x: canvas.width / 2, y: canvas.height / 2, down: false, shown: false };
  #strokes: Place[][] = [];
  #picture: ImageBitmap | null = null;
  #name = "";

  /**
   * @param changed called when the visible content changes.
   * @param refuse called with the reason why a file is unusable, or with null after a usable one.
   */
  constructor(
    private readonly changed: () => void,
    private readonly refuse: (message: string | null) => void,
  ) {
    canvas.addEventListener("pointerdown", (event) => this.#press(event));
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      this.#strokes.at(-1)?.push(at(event));
      this.paint();
    });
    canvas.addEventListener("focus", () => {
      this.#brush.shown = canvas.matches(":focus-visible");
      this.paint();
    });
    canvas.addEventListener("blur", () => {
      [this.#brush.shown, this.#brush.down] = [false, false];
      this.paint();
    });
    canvas.addEventListener("keydown", (event) => this.#key(event));
    for (const kind of ["dragover", "dragleave", "drop"]) {
      canvas.addEventListener(kind, (event) => {
        event.preventDefault();
        canvas.classList.toggle("over", kind === "dragover");
        if (event instanceof DragEvent && kind === "drop") void this.#take(event.dataTransfer?.files[0]);
      });
    }
    element<HTMLInputElement>("picture").addEventListener("change", (event) => {
      const input = event.target as HTMLInputElement;
      void this.#take(input.files?.[0]);
      input.value = "";
    });
    EXAMPLES.forEach((_, digit) => example.append(new Option(String(digit), String(digit))));
    example.addEventListener("change", () => this.#show(example.value === "" ? null : Number(example.value)));
    element("clear").addEventListener("click", () => {
      this.#show(null);
      announce("The drawing area is empty.");
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  /** "digit" or "picture". */
  get thing(): string {
    return this.#coloured === null ? "digit" : "picture";
  }

  /**
   * Adapts to the input of a model.
   *
   * @returns whether there is an input for its shape.
   */
  suit(shape: readonly number[]): boolean {
    const [channels, height, width] = shape;
    const digit = shape.length === 3 && channels === 1 && height === SIDE && width === SIDE;
    if (!digit && !(shape.length === 3 && channels === 3 && height && width)) return false;
    this.#coloured = digit ? null : [width ?? SIDE, height ?? SIDE];
    [preview.width, preview.height] = this.#coloured ?? [SIDE, SIDE];
    element("examples").hidden = this.#coloured !== null;
    if (this.#coloured !== null) {
      canvas.setAttribute("role", "img");
      canvas.removeAttribute("aria-roledescription");
      canvas.classList.add("shown");
      canvas.removeAttribute("tabindex");
    }
    return true;
  }

  /** The numbers of the drawing, on paper of its own: the page's colours do not matter. Null if it is empty. */
  sample(): number[] | null {
    if (this.#coloured !== null) return this.#picture === null ? null : pixelsOf(this.#picture, ...this.#coloured);
    const sheet = new OffscreenCanvas(canvas.width, canvas.height);
    const pen = sheet.getContext("2d") as OffscreenCanvasRenderingContext2D;
    if (this.#picture !== null) drawSquare(pen, this.#picture, sheet.width, sheet.height);
    else this.#draw(pen);
    return digitOf(inkOf(pen.getImageData(0, 0, sheet.width, sheet.height)));
  }

  paint(): void {
    const { width, height } = canvas;
    const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
    pen.clearRect(0, 0, width, height);
    if (this.#picture !== null) drawSquare(pen, this.#picture, width, height);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(document.body).color;
    this.#draw(pen);
    const values = this.sample();
    this.#preview(values);
    canvas.setAttribute("aria-label", this.#description());
    preview.setAttribute("aria-label", values === null ? "Nothing to encrypt yet" : `The ${values.length} numbers that are encrypted, as a picture`);
    const { x, y, down, shown } = this.#brush;
    if (!shown) return;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, BRUSH / 2 + 2, 0, 7);
    pen.setLineDash(down ? [] : [4, 4]);
    pen.stroke();
    pen.setLineDash([]);
  }

  /** The visible content, in words. */
  #description(): string {
    if (this.#picture !== null) return `The picture ${this.#name}`;
    if (example.value !== "") return `The example ${example.value}`;
    const count = this.#strokes.length;
    return count === 0 ? "Empty" : `A drawing of ${count} stroke${count === 1 ? "" : "s"}`;
  }

  #draw(pen: Pen): void {
    [pen.lineWidth, pen.lineCap, pen.lineJoin] = [BRUSH, "round", "round"];
    for (const stroke of this.#strokes) {
      pen.beginPath();
      stroke.forEach(({ x, y }, i) => (i === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y)));
      const first = stroke[0];
      if (stroke.length === 1 && first) pen.arc(first.x, first.y, BRUSH / 4, 0, 7);
      pen.stroke();
    }
  }

  #preview(values: number[] | null): void {
    const small = preview.getContext("2d") as CanvasRenderingContext2D;
    small.clearRect(0, 0, preview.width, preview.height);
    if (values === null) return;
    if (this.#coloured !== null) {
      small.putImageData(pictureOf(values, ...this.#coloured), 0, 0);
      return;
    }
    small.fillStyle = getComputedStyle(document.body).color;
    values.forEach((value, i) => {
      small.globalAlpha = value;
      small.fillRect(i % SIDE, Math.floor(i / SIDE), 1, 1);
    });
    small.globalAlpha = 1;
  }

  /** Clears the area, and shows an example if one is given. */
  #show(digit: number | null): void {
    this.#picture = null;
    this.#strokes = (digit === null ? [] : (EXAMPLES[digit] ?? [])).map((stroke) =>
      stroke.map(([x, y]) => ({ x: x * canvas.width, y: y * canvas.height })),
    );
    example.value = digit === null ? "" : String(digit);
    this.#changed();
  }

  #changed(): void {
    this.changed();
    this.paint();
  }

  /** Begins a stroke, and removes a picture or an example. */
  #begin(place: Place): void {
    if (this.#picture !== null || example.value !== "") this.#show(null);
    this.#strokes.push([place]);
    this.#changed();
  }

  #press(event: PointerEvent): void {
    if (this.#coloured !== null || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    this.#begin(at(event));
  }

  #key(event: KeyboardEvent): void {
    if (this.#coloured !== null) return;
    const brush = this.#brush;
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-STEP, 0],
      ArrowRight: [STEP, 0],
      ArrowUp: [0, -STEP],
      ArrowDown: [0, STEP],
    };
    const move = moves[event.key];
    if (event.key === " ") {
      brush.down = !brush.down;
      if (brush.down) this.#begin({ x: brush.x, y: brush.y });
      announce(`Brush ${brush.down ? "down" : "up"}, ${this.#where()}.`);
    } else if (move) {
      brush.x = Math.min(Math.max(brush.x + move[0], 0), canvas.width);
      brush.y = Math.min(Math.max(brush.y + move[1], 0), canvas.height);
      if (brush.down) this.#strokes.at(-1)?.push({ x: brush.x, y: brush.y });
      announce(this.#where());
    } else {
      return;
    }
    event.preventDefault();
    brush.shown = true;
    this.paint();
  }

  /** The position of the brush, in words. */
  #where(): string {
    const share = (part: number, whole: number) => Math.round((100 * part) / whole);
    return `${share(this.#brush.x, canvas.width)} percent from the left, ${share(this.#brush.y, canvas.height)} from the top`;
  }

  async #take(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    try {
      if (file.size > MAX_PICTURE_BYTES) throw new Error();
      const picture = await createImageBitmap(file);
      this.#show(null);
      [this.#picture, this.#name] = [picture, file.name];
      this.#changed();
      this.refuse(this.sample() === null ? `There is no ${this.thing} to be seen in that picture.` : null);
      announce(`${file.name} is in the drawing area.`);
    } catch {
      this.refuse(`${file.name} is not a picture that this browser can read, or is larger than 16 MB.`);
    }
  }
}

function at(event: PointerEvent): Place {
  const box = canvas.getBoundingClientRect();
  return {
    x: ((event.clientX - box.left) / box.width) * canvas.width,
    y: ((event.clientY - box.top) / box.height) * canvas.height,
  };
}
