import { type Answer, ClientError, type KeyReport, type ModelInfo, type Seen, Session } from "./client/dist/index.js";
import { digitOf, inkOf, SIDE } from "./digit.js";
import { drawSquare, pictureOf, pixelsOf } from "./picture.js";

const MAX_PICTURE_BYTES = 16 << 20;
const BRUSH = 26;
const STEP = 8;

const element = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const canvas = element<HTMLCanvasElement>("canvas");
const preview = element<HTMLCanvasElement>("preview");
const ask = element<HTMLButtonElement>("ask");
const progress = element<HTMLProgressElement>("progress");
const context = canvas.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;

let model: ModelInfo | null = null;
let session = begin();
let keys: KeyReport | null = null;
let busy = false;
/** Width and height of the coloured pictures that the model takes; null if it takes digits. */
let coloured: readonly [number, number] | null = null;
const thing = () => (coloured === null ? "digit" : "picture");

// Drawing: one brush, moved by a pointer or by arrow keys.
const brush = { x: canvas.width / 2, y: canvas.height / 2, down: false, shown: false };
const strokes: { x: number; y: number }[][] = [];
let dropped: ImageBitmap | null = null;

function paint(): void {
  const { width, height } = canvas;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  context.clearRect(0, 0, width, height);
  if (dropped !== null) drawSquare(context, dropped, width, height);
  context.strokeStyle = context.fillStyle = dark ? "#e6ebe9" : "#1b2225";
  [context.lineWidth, context.lineCap, context.lineJoin] = [BRUSH, "round", "round"];
  for (const stroke of strokes) {
    context.beginPath();
    stroke.forEach(({ x, y }, i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    const first = stroke[0];
    if (stroke.length === 1 && first) context.arc(first.x, first.y, BRUSH / 4, 0, 7);
    context.stroke();
  }
  show(sample());
  if (brush.shown) {
    context.lineWidth = 2;
    context.beginPath();
    context.arc(brush.x, brush.y, BRUSH / 2 + 2, 0, 7);
    context.setLineDash(brush.down ? [] : [4, 4]);
    context.stroke();
    context.setLineDash([]);
  }
}

/** The numbers of what is drawn, on paper of its own: the page's colours do not matter. */
function sample(): number[] | null {
  if (coloured !== null) return dropped === null ? null : pixelsOf(dropped, ...coloured);
  const sheet = new OffscreenCanvas(canvas.width, canvas.height);
  const pen = sheet.getContext("2d") as OffscreenCanvasRenderingContext2D;
  if (dropped !== null) {
    drawSquare(pen, dropped, sheet.width, sheet.height);
    return digitOf(inkOf(pen.getImageData(0, 0, sheet.width, sheet.height)));
  }
  [pen.lineWidth, pen.lineCap, pen.lineJoin] = [BRUSH, "round", "round"];
  for (const stroke of strokes) {
    pen.beginPath();
    stroke.forEach(({ x, y }, i) => (i === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y)));
    const first = stroke[0];
    if (stroke.length === 1 && first) pen.arc(first.x, first.y, BRUSH / 4, 0, 7);
    pen.stroke();
  }
  return digitOf(inkOf(pen.getImageData(0, 0, sheet.width, sheet.height)));
}

function show(values: number[] | null): void {
  const small = preview.getContext("2d") as CanvasRenderingContext2D;
  small.clearRect(0, 0, preview.width, preview.height);
  if (coloured !== null) {
    if (values !== null) small.putImageData(pictureOf(values, ...coloured), 0, 0);
  } else {
    small.fillStyle = getComputedStyle(document.body).color;
    values?.forEach((value, i) => {
      small.globalAlpha = value;
      small.fillRect(i % SIDE, Math.floor(i / SIDE), 1, 1);
    });
    small.globalAlpha = 1;
  }
  ask.disabled = busy || model === null || values === null;
}

function at(event: PointerEvent): { x: number; y: number } {
  const box = canvas.getBoundingClientRect();
  return {
    x: ((event.clientX - box.left) / box.width) * canvas.width,
    y: ((event.clientY - box.top) / box.height) * canvas.height,
  };
}

canvas.addEventListener("pointerdown", (event) => {
  if (coloured !== null || event.button !== 0) return;
  canvas.setPointerCapture(event.pointerId);
  dropped = null;
  forget();
  strokes.push([at(event)]);
  paint();
});
canvas.addEventListener("pointermove", (event) => {
  if (!canvas.hasPointerCapture(event.pointerId)) return;
  strokes.at(-1)?.push(at(event));
  paint();
});
canvas.addEventListener("focus", () => {
  brush.shown = canvas.matches(":focus-visible");
  paint();
});
canvas.addEventListener("blur", () => {
  [brush.shown, brush.down] = [false, false];
  paint();
});
canvas.addEventListener("keydown", (event) => {
  if (coloured !== null) return;
  const moves: Record<string, [number, number]> = {
    ArrowLeft: [-STEP, 0],
    ArrowRight: [STEP, 0],
    ArrowUp: [0, -STEP],
    ArrowDown: [0, STEP],
  };
  const move = moves[event.key];
  if (event.key === " ") {
    brush.down = !brush.down;
    if (brush.down) {
      dropped = null;
      forget();
      strokes.push([{ x: brush.x, y: brush.y }]);
    }
  } else if (move) {
    brush.x = Math.min(Math.max(brush.x + move[0], 0), canvas.width);
    brush.y = Math.min(Math.max(brush.y + move[1], 0), canvas.height);
    if (brush.down) strokes.at(-1)?.push({ x: brush.x, y: brush.y });
  } else {
    return;
  }
  event.preventDefault();
  brush.shown = true;
  paint();
});

element("clear").addEventListener("click", () => {
  strokes.length = 0;
  dropped = null;
  forget();
  paint();
});

async function take(file: File | undefined): Promise<void> {
  if (file === undefined) return;
  try {
    if (file.size > MAX_PICTURE_BYTES) throw new Error();
    dropped = await createImageBitmap(file);
    strokes.length = 0;
    forget();
    fail(sample() === null ? `There is no ${thing()} to be seen in that picture.` : null);
  } catch {
    fail(`${file.name} is no picture that this browser reads, or has more than 16 MiB.`);
  }
  paint();
}

element<HTMLInputElement>("picture").addEventListener("change", (event) => {
  const input = event.target as HTMLInputElement;
  void take(input.files?.[0]);
  input.value = "";
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  canvas.addEventListener(kind, (event) => {
    event.preventDefault();
    canvas.classList.toggle("over", kind === "dragover");
    if (event instanceof DragEvent && kind === "drop") void take(event.dataTransfer?.files[0]);
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

// Asking.
/** Says what happens. A screen reader reads the first text when it changes, and nothing of the numbers that follow. */
function tell(text: string, done: number | null = null, total = 1, amount = ""): void {
  if (element("status").textContent !== text) element("status").textContent = text;
  progress.hidden = done === null;
  progress.max = total;
  progress.value = done ?? 0;
  element("amount").hidden = amount === "";
  element("amount").textContent = amount;
}

function begin(): Session {
  const made = new Session();
  made.onPause = () => {
    element("amount").hidden = false;
    element("amount").textContent = "The server cannot be reached, or is busy. The tab asks again.";
  };
  return made;
}

/** Brings what happens into view: on a phone it is below the fold. */
function look(): void {
  element("answer-title").closest("section")?.scrollIntoView({ block: "nearest" });
}

/** Takes an answer away that is not of what is to be seen any more. */
function forget(): void {
  if (busy) return;
  fail(null);
  element("digit").hidden = true;
  element("scores").replaceChildren();
  if (model !== null) tell(invitation());
}

function invitation(): string {
  const act = coloured === null ? "Draw a digit" : "Choose a picture";
  return keys === null ? `${act} and press the button. The first time the tab makes its keys.` : `${act} and press the button.`;
}

/** How much has been done, and for how long it goes on at the pace so far. */
function pace(start: { time: number; done: number }, done: number, total: number): string {
  const seconds = (performance.now() - start.time) / 1000;
  const left = ((total - done) * seconds) / (done - start.done);
  const rest = seconds > 1 && done > start.done && done < total ? `, about ${Math.ceil(left)} s to go` : "";
  return `${bytes(done)} of ${bytes(total)}${rest}`;
}

function fail(message: string | null): void {
  const box = element("error");
  box.hidden = message === null;
  box.textContent = message ?? "";
}

function bytes(count: number): string {
  const units: [number, string][] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [size, unit] = units.find(([size]) => count >= size) ?? [1, "B"];
  return `${(count / size).toLocaleString("en", { maximumSignificantDigits: 3 })} ${unit}`;
}

function milliseconds(time: number): string {
  return time < 1000 ? `${time.toFixed(time < 10 ? 1 : 0)} ms` : `${(time / 1000).toFixed(1)} s`;
}

function row(what: string, size: number | null, time: number | null): HTMLTableRowElement {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = what;
  line.append(head);
  for (const text of [size === null ? "" : bytes(size), time === null ? "" : milliseconds(time)]) {
    line.insertCell().textContent = text;
  }
  return line;
}

function travelled(answer: Answer | null): void {
  const rows: HTMLTableRowElement[] = [];
  if (keys !== null) {
    rows.push(row("tab: makes keys, once", null, keys.making), row("keys, once", keys.bytes, keys.sending));
    element("keys-note").textContent =
      `${keys.keys} keys for evaluation; the module that made them held at most ${bytes(keys.peakMemory)}. ` +
      `They serve every ${thing()} until this page is closed.`;
  }
  if (answer !== null) {
    rows.push(
      row("tab: encrypts", null, answer.encrypting),
      row(`encrypted ${thing()}`, answer.sent, null),
      row("server: evaluates", null, answer.evaluating),
      row("encrypted answer", answer.received, null),
      row("on the way, and waiting", null, answer.waiting),
      row("tab: decrypts", null, answer.decrypting),
    );
  }
  element("travel").replaceChildren(...rows);
}

function answered(answer: Answer): void {
  const labels = answer.scores.map((_, i) => model?.labels[i] ?? String(i));
  const best = answer.scores.indexOf(Math.max(...answer.scores));
  element("digit").hidden = false;
  element("label").textContent = labels[best] ?? "";
  const words = labels.some((label) => label.length > 3);
  for (const id of ["digit", "scores"]) element(id).classList.toggle("words", words);
  const [low, high] = [Math.min(...answer.scores), Math.max(...answer.scores)];
  element("scores").replaceChildren(
    ...answer.scores.map((score, i) => {
      const [item, label, bar, fill, number] = ["li", "span", "span", "i", "span"].map((tag) =>
        document.createElement(tag),
      ) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];
      label.textContent = labels[i] ?? "";
      bar.className = "bar";
      fill.style.width = `${(100 * (score - low)) / (high - low || 1)}%`;
      bar.append(fill);
      number.className = "number";
      number.textContent = score.toFixed(2);
      item.append(label, bar, number);
      return item;
    }),
  );
}

function saw(seen: Seen): void {
  element("seen-summary").textContent =
    `${seen.secretKeys === 0 ? "No secret key" : `${seen.secretKeys} secret keys`}, no picture, no answer: ` +
    `${seen.objects.length} objects, with 32 bytes from the middle of each.`;
  element("seen").replaceChildren(
    ...seen.objects.map((object) => {
      const item = document.createElement("li");
      const sample = document.createElement("code");
      sample.textContent = object.sample;
      item.append(`${object.direction}: ${object.what}, ${bytes(object.size)}`, sample);
      return item;
    }),
  );
}

async function prepared(): Promise<KeyReport> {
  const text = "The tab makes its keys and sends those that evaluate.";
  tell(text, 0, 1, `0 B of ${bytes(model?.keyBytes ?? 0)}`);
  look();
  let start: { time: number; done: number } | null = null;
  return session.prepareKeys((done, total) => {
    start = start === null || done < start.done ? { time: performance.now(), done } : start;
    tell(text, done, total, done === total ? "The server checks them." : pace(start, done, total));
  });
}

async function inferred(values: readonly number[]): Promise<Answer> {
  // What the model is not for is said before a key is made.
  await session.check(values);
  for (let renewed = false; ; renewed = true) {
    if (keys === null) {
      keys = await prepared();
      travelled(null);
      saw(await session.seen());
    }
    try {
      const text = `The server computes on the encrypted ${thing()}.`;
      const start = performance.now();
      tell(text, 0, 1, "The tab encrypts.");
      look();
      return await session.infer(values, (done, total) =>
        tell(text, done, total, done === 0 ? "It waits for its turn." : `Step ${done} of ${total}, ${milliseconds(performance.now() - start)}`),
      );
    } catch (error) {
      // A server that was started anew, or has deleted what was not used, gets new keys.
      if (renewed || !(error instanceof ClientError && error.code === "unknown_keys")) throw error;
      keys = null;
    }
  }
}

ask.addEventListener("click", async () => {
  const values = sample();
  if (values === null || busy) return;
  forget();
  busy = true;
  paint();
  try {
    const answer = await inferred(values);
    answered(answer);
    travelled(answer);
    saw(await session.seen());
    tell("Decrypted in this tab.");
    look();
  } catch (error) {
    tell("There is no answer.");
    const code = error instanceof ClientError ? error.code : "internal";
    const again = code === "unreachable" || code === "busy" ? " What it has is kept: press the button to go on." : "";
    fail((error instanceof Error ? error.message : String(error)) + again);
    element("error").dataset["code"] = code;
    // Keys that are gone, and a worker that has no memory left, are made anew.
    if (["unknown_keys", "memory", "internal", "other_model"].includes(code)) {
      keys = null;
      await session.close().catch(() => undefined);
      session = begin();
      await connect();
    }
  }
  busy = false;
  paint();
  if (!element("error").hidden) look();
  // A button that was disabled has lost the focus.
  if (document.activeElement === document.body) ask.focus({ preventScroll: true });
});

/** The page for a model: to draw digits on, or to drop coloured pictures. */
function suit(found: ModelInfo): void {
  const [channels, height, width] = found.inputShape;
  const digit = found.inputShape.length === 3 && channels === 1 && height === SIDE && width === SIDE;
  if (!digit && !(found.inputShape.length === 3 && channels === 3 && height && width)) {
    throw new ClientError("other_model", `This page has no input of shape ${found.inputShape.join(" x ")}.`);
  }
  coloured = digit ? null : [width ?? SIDE, height ?? SIDE];
  [preview.width, preview.height] = coloured ?? [SIDE, SIDE];
  if (coloured === null) return;
  document.title = element("title").textContent = "A picture that the server never sees";
  element("draw-title").textContent = "Your picture";
  element("draw-help").textContent =
    `Drop a picture here, or choose one: its middle is scaled to ${width} x ${height} pixels. ` +
    `The model knows ${found.labels.join(", ")}.`;
  canvas.setAttribute("aria-label", "The picture");
  preview.setAttribute("aria-label", `The ${found.inputShape.join(" x ")} numbers that are encrypted, as a picture`);
  canvas.classList.add("shown");
  canvas.removeAttribute("tabindex");
}

async function connect(): Promise<void> {
  try {
    const found = await session.connect();
    suit(found);
    model = found;
    element("insecure").hidden = !model.insecure;
    element("model").textContent =
      `Model ${model.name}, boosted deflation: this tab encrypts in coefficients modulo one prime of ${model.modulusBits} bits, ` +
      `N = 2^${model.logN}${model.insecure ? "" : ", at 128-bit security"}; the server raises the modulus and computes. ` +
      `It asks for ${bytes(model.keyBytes)} of keys, once.`;
    if (!busy) forget();
  } catch (error) {
    model = null;
    element("model").textContent = "There is no model.";
    fail(error instanceof Error ? error.message : String(error));
    element("error").dataset["code"] = error instanceof ClientError ? error.code : "internal";
  }
  paint();
}

addEventListener("pagehide", () => session.abandon());
addEventListener("pageshow", (event) => {
  // Back from the browser's cache: the worker ended when the page was left.
  if (event.persisted) location.reload();
});
paint();
void connect();
