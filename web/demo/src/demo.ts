/** The page: the order of requests, and the texts shown meanwhile. */

import { type Answer, ClientError, type KeyReport, type ModelInfo, Session } from "./client/dist/index.js";
import { Drawing } from "./drawing.js";
import { hideAnswer, showAnswer, showSeen, showTime, showTravel } from "./results.js";
import { about, announce, bytes, element, milliseconds } from "./text.js";

/** Bits per second of a slow and a fast connection, for predicting the time of the upload. */
const LINKS: readonly [number, string][] = [[10e6, "10 Mbit/s"], [100e6, "100 Mbit/s"]];
/** Measured bytes of keys per second that a tab makes while a server on the same two cores receives them. */
const PACE = 25e6;

const ask = element<HTMLButtonElement>("ask");
const cancel = element<HTMLButtonElement>("cancel");
const progress = element<HTMLProgressElement>("progress");

let model: ModelInfo | null = null;
let session = begin();
let keys: KeyReport | null = null;
let last: Answer | null = null;
let busy = false;
const drawing = new Drawing(
  () => {
    forget();
    ready();
  },
  (message) => {
    fail(message);
    ready();
  },
);

/** Enables the button when there is something to ask about. */
function ready(): void {
  ask.disabled = busy || model === null || drawing.sample() === null;
  cancel.hidden = !busy;
}

/** Shows the current step. A screen reader reads the first text when it changes, and every quarter of the progress. */
function tell(text: string, done: number | null = null, total = 1, amount = ""): void {
  const status = element("status");
  const quarter = done === null ? 0 : Math.floor((4 * done) / total);
  if (status.textContent !== text) status.textContent = text;
  else if (quarter > Number(progress.dataset["quarter"]) && quarter < 4) announce(`${25 * quarter} percent. ${amount}`);
  progress.dataset["quarter"] = String(quarter);
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
    element("amount").textContent = "The server is unreachable or busy. This page tries again.";
  };
  return made;
}

/** Scrolls the current step into view: on a phone it is below the fold. */
function look(): void {
  element("answer-title").closest("section")?.scrollIntoView({ block: "nearest" });
}

/** Hides an answer that belongs to an earlier input. */
function forget(): void {
  if (busy) return;
  fail(null);
  hideAnswer();
  if (model !== null) tell(`${drawing.thing === "digit" ? "Draw a digit" : "Choose a picture"} and press the button.`);
}

/** Shows what the next press of the button sends, and how long it takes. */
function foretell(): void {
  if (model === null) return;
  const question = `an encrypted ${drawing.thing} of ${bytes(model.questionBytes)}; the answer has ${bytes(model.answerBytes)}`;
  if (keys !== null) {
    const took = last === null ? "" : ` The last answer took ${milliseconds(last.encrypting + last.evaluating + last.waiting + last.decrypting)}.`;
    element("cost").textContent = `The next answer: this page sends ${question}.${took}`;
    return;
  }
  const size = model.keyBytes;
  const made = size / PACE;
  const times = LINKS.map(([speed, name]) => `${about(Math.max((8 * size) / speed, made))} at ${name}`).join(", ");
  const here = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  element("cost").textContent =
    `The first answer: this page makes keys and sends ${bytes(size)} of them, once` +
    `${here ? `, to a server on this device: ${about(made)}` : `: ${times} of upload`}. Then it sends ${question}. You can cancel at any time.`;
}

/** The progress, and the remaining time at the average pace so far. */
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

async function report(keys: KeyReport): Promise<void> {
  const seen = await session.seen();
  showTravel(drawing.thing, keys, last, await session.traffic(), seen);
  showTime(keys, last);
  showSeen(seen);
}

async function prepared(): Promise<KeyReport> {
  const text = "This page makes its keys and sends the evaluation keys.";
  tell(text, 0, 1, `0 B of ${bytes(model?.keyBytes ?? 0)}`);
  look();
  let start: { time: number; done: number } | null = null;
  return session.prepareKeys((done, total) => {
    start = start === null || done < start.done ? { time: performance.now(), done } : start;
    tell(text, done, total, done === total ? "The server checks them." : pace(start, done, total));
  });
}

async function inferred(values: readonly number[]): Promise<Answer> {
  for (let renewed = false; ; renewed = true) {
    try {
      // Refuses an input outside of the model's range before making a key.
      await session.check(values);
      if (keys === null) {
        last = null;
        keys = await prepared();
        await report(keys);
      }
      const text = `The server computes on the encrypted ${drawing.thing}.`;
      const start = performance.now();
      tell(text, 0, 1, "Encrypting on this device.");
      look();
      return await session.infer(values, (done, total) =>
        tell(text, done, total, done === 0 ? "It waits for its turn." : `Step ${done} of ${total}, ${milliseconds(performance.now() - start)}`),
      );
    } catch (error) {
      // A server that restarted, or deleted unused keys, gets new keys. If it now has another version of the model, the
      // page uses that version.
      const code = error instanceof ClientError ? error.code : "";
      if (renewed || (code !== "unknown_keys" && code !== "retired")) throw error;
      keys = null;
      if (code === "retired") await connect();
      if (model === null) throw error;
    }
  }
}

/** Shows why there is no answer, and replaces what has become unusable. */
async function failed(error: unknown): Promise<void> {
  const code = error instanceof ClientError ? error.code : "internal";
  if (code === "cancelled") {
    tell(keys === null ? "Cancelled. The server keeps the keys that it has. Press the button to continue." : "Cancelled.");
    return;
  }
  tell("There is no answer.");
  const again = code === "unreachable" || code === "busy" ? " The server keeps what it has. Press the button to continue." : "";
  fail((error instanceof Error ? error.message : String(error)) + again);
  element("error").dataset["code"] = code;
  if (["unknown_keys", "retired", "memory", "internal", "other_model"].includes(code)) {
    keys = null;
    await session.close().catch(() => undefined);
    session = begin();
    await connect();
  }
}

ask.addEventListener("click", async () => {
  const values = drawing.sample();
  if (values === null || busy) return;
  forget();
  busy = true;
  ready();
  try {
    const answer = await inferred(values);
    last = answer;
    if (keys !== null) await report(keys);
    tell(`${showAnswer(answer.scores, model?.labels ?? [])} It was decrypted in this tab.`);
    look();
  } catch (error) {
    await failed(error);
  }
  busy = false;
  cancel.disabled = false;
  // A button that is disabled or hidden loses the focus.
  const lost = document.activeElement === document.body || document.activeElement === cancel;
  ready();
  foretell();
  if (!element("error").hidden) look();
  if (lost) ask.focus({ preventScroll: true });
});

cancel.addEventListener("click", () => {
  cancel.disabled = true;
  void session.cancel().catch(() => undefined);
});

/** Adapts the page to a model: drawing of digits, or coloured pictures. */
function suit(found: ModelInfo): void {
  if (!drawing.suit(found.inputShape)) {
    throw new ClientError("other_model", `This page has no input for the model's shape ${found.inputShape.join(" x ")}.`);
  }
  if (drawing.thing === "digit") return;
  const [, height, width] = found.inputShape;
  document.title = element("title").textContent = "A picture that the server never sees";
  element("draw-title").textContent = "Your picture";
  element("lead").textContent =
    "Choose a picture. This page encrypts it on your device. The server classifies it without seeing it: it computes on " +
    "encrypted numbers, and only this page can read its answer.";
  document.querySelectorAll(".thing").forEach((word) => (word.textContent = "picture"));
  element("draw-help").textContent =
    `Drop a picture here, or choose one: its middle is scaled to ${width} x ${height} pixels. ` +
    `The model knows ${found.labels.join(", ")}.`;
}

async function connect(): Promise<void> {
  try {
    // Only who opens the page can accept such parameters, and the page keeps saying so.
    const found = await session.connect("", null, { insecure: new URLSearchParams(location.search).has("insecure") });
    suit(found);
    model = found;
    element("insecure").hidden = !model.insecure;
    element("model").textContent =
      `Model ${model.name}, CKKS with boosted deflation. This tab encrypts in coefficients modulo one prime of ${model.modulusBits} bits, ` +
      `N = 2^${model.logN}${model.insecure ? "" : ", at 128-bit security"}. The server raises the modulus and computes. ` +
      "The secret key is made in a worker of this tab, and disappears when the page is closed.";
    if (!busy) forget();
    foretell();
  } catch (error) {
    model = null;
    element("model").textContent = element("cost").textContent = "There is no model.";
    fail(error instanceof Error ? error.message : String(error));
    element("error").dataset["code"] = error instanceof ClientError ? error.code : "internal";
  }
  drawing.paint();
  ready();
}

addEventListener("pagehide", () => session.abandon());
addEventListener("pageshow", (event) => {
  // Back from the browser's cache: the worker ended when the page was left.
  if (event.persisted) location.reload();
});
drawing.paint();
void connect();
