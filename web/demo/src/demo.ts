/** The page: the order of requests, and the texts shown meanwhile. */

import { type Answer, ClientError, type KeyReport, type ModelInfo, Session } from "./client/dist/index.js";
import { Drawing } from "./drawing.js";
import { promised } from "./promise.js";
import { hideAnswer, showAnswer, showSeen, showTime, showTravel } from "./results.js";
import { announce, bytes, element, milliseconds } from "./text.js";
import { hideViews, showViews } from "./views.js";

/** How often a small request is timed: the fastest counts, because a single one may wait for something else. */
const TRIPS = 3;

const ask = element<HTMLButtonElement>("ask");
const cancel = element<HTMLButtonElement>("cancel");
const progress = element<HTMLProgressElement>("progress");

let model: ModelInfo | null = null;
let session = begin();
let keys: KeyReport | null = null;
/** Keys that are being made and sent. */
let making: Promise<KeyReport> | null = null;
/** Bytes of keys a second that this tab makes, the server's seconds of an evaluation, and those of a small request. */
let pace = 0;
let evaluation: number | null = null;
let trip = 0;
let last: Answer | null = null;
let busy = false;
/** Whether the visitor cancelled: then keys are made only for a question. */
let declined = false;
const drawing = new Drawing(
  () => {
    forget();
    ready();
    begun();
  },
  (message) => {
    fail(message);
    ready();
  },
);

/** Enables the button when there is something to ask about. */
function ready(): void {
  ask.disabled = busy || model === null || drawing.sample() === null;
  cancel.hidden = !busy && making === null;
}

/** Makes and sends the keys while the visitor draws. What goes wrong is said when the button is pressed. */
function begun(): void {
  if (busy || declined || model === null || keys !== null || making !== null || drawing.sample() === null) return;
  const upload = prepared();
  ready();
  upload.then(
    () => {
      if (!busy) forget();
      foretell();
    },
    (error: unknown) => {
      if (busy) return;
      declined = error instanceof ClientError && error.code === "cancelled";
      tell(declined ? "Cancelled. The server keeps the keys that it has. Press the button to continue." : instruction());
    },
  ).finally(ready);
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

/** Scrolls what was just said into view: on a phone it is below the fold. */
function look(where = "status"): void {
  element(where).scrollIntoView({ block: "nearest" });
}

/** What the visitor does next. */
function instruction(): string {
  return `${drawing.thing === "digit" ? "Draw a digit" : "Choose a picture"} and press the button.`;
}

/** Hides an answer that belongs to an earlier input. */
function forget(): void {
  if (busy) return;
  fail(null);
  hideAnswer();
  hideViews();
  if (model !== null && making === null) tell(instruction());
}

/** Shows what the next press of the button sends, and how long it takes. */
function foretell(): void {
  if (model === null) return;
  const question = `an encrypted ${drawing.thing} of ${bytes(model.questionBytes)}; the answer is ${bytes(model.answerBytes)}`;
  const cost = element("cost");
  if (keys !== null) {
    const took = last === null ? "" : ` The last answer took ${milliseconds(last.encrypting + last.evaluating + last.waiting + last.decrypting)}.`;
    cost.textContent = `The next answer: this page sends ${question}.${took}`;
    return;
  }
  const { seconds, words } = promised(model.keyBytes, pace, evaluation, trip);
  if (seconds !== null) cost.dataset["seconds"] = String(seconds);
  cost.textContent =
    `The first answer: ${words}, most of it while you draw. From your first ${drawing.thing === "digit" ? "stroke" : "picture"} on, this page ` +
    `makes keys and sends ${bytes(model.keyBytes)} of them, once. Then it sends ${question}. You can cancel at any time.`;
}

/** The progress, and the remaining time at the average pace so far. */
function progressed(start: { time: number; done: number }, done: number, total: number): string {
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

/** Makes and sends the keys, once for all who ask meanwhile. */
function prepared(): Promise<KeyReport> {
  const text = "This page makes its keys and sends the evaluation keys.";
  tell(text, 0, 1, `0 B of ${bytes(model?.keyBytes ?? 0)}`);
  let start: { time: number; done: number } | null = null;
  making ??= session
    .prepareKeys((done, total) => {
      start = start === null || done < start.done ? { time: performance.now(), done } : start;
      tell(text, done, total, done === total ? "The server checks them." : progressed(start, done, total));
    })
    .then((report) => (keys = report))
    .finally(() => (making = null));
  return making;
}

async function inferred(values: readonly number[]): Promise<Answer> {
  for (let renewed = false; ; renewed = true) {
    try {
      // Refuses an input outside of the model's range before making a key.
      await session.check(values);
      if (keys === null) {
        last = null;
        look();
        await report(await (making ?? prepared()));
      }
      const text = `The server computes on the encrypted ${drawing.thing}.`;
      const start = performance.now();
      tell(text, 0, 1, "Encrypting on this device.");
      look();
      return await session.infer(values, (done, total, stage) =>
        tell(text, done, total, done > 0 ? `Step ${done} of ${total}, ${milliseconds(performance.now() - start)}` : stage === "waiting" ? "It waits for a free worker." : "It reads your keys."),
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
    declined = keys === null;
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
    const words = showAnswer(answer.scores, model?.labels ?? []);
    showViews(drawing.thing, answer, element("label").textContent ?? "");
    tell(`${words} It was decrypted in this tab.`);
    look("answer-section");
  } catch (error) {
    await failed(error);
  }
  busy = false;
  cancel.disabled = false;
  // A button that is disabled or hidden loses the focus.
  const lost = document.activeElement === document.body || document.activeElement === cancel;
  ready();
  foretell();
  if (!element("error").hidden) look("error");
  if (lost) ask.focus({ preventScroll: true });
});

cancel.addEventListener("click", () => {
  cancel.disabled = true;
  void session.cancel().catch(() => undefined);
});

/** Adapts the page to a model: drawing of digits, or coloured pictures. */
function suit(model: ModelInfo): void {
  if (!drawing.suit(model.inputShape)) {
    throw new ClientError("other_model", `This page has no input for the model's shape ${model.inputShape.join(" x ")}.`);
  }
  if (drawing.thing === "digit") return;
  const [, height, width] = model.inputShape;
  document.title = element("title").textContent = "A picture that the server never sees";
  element("draw-title").textContent = "Your picture";
  element("lead").textContent =
    "Choose a picture. This page encrypts it on your device. The server classifies it without seeing it: it computes on " +
    "encrypted numbers, and only this page can read its answer.";
  document.querySelectorAll(".thing").forEach((word) => (word.textContent = "picture"));
  element("draw-help").textContent =
    `Drop a picture here, or choose one: its middle is scaled to ${width} x ${height} pixels. ` +
    `The model knows ${model.labels.join(", ")}.`;
}

async function connect(): Promise<void> {
  try {
    // Only who opens the page can accept such parameters, and the page keeps saying so.
    const found = await session.connect("", null, { insecure: new URLSearchParams(location.search).has("insecure") });
    suit(found);
    model = found;
    element("insecure").hidden = !model.insecure;
    // Without them the page promises no time, and the press of the button tells what is wrong.
    pace = await session.pace().catch(() => 0);
    const trips: number[] = [];
    for (let i = 0; i < TRIPS; i++) {
      const start = performance.now();
      evaluation = await session.evaluationSeconds().catch(() => null);
      trips.push((performance.now() - start) / 1000);
    }
    trip = Math.min(...trips);
    element("model").textContent =
      "The model's arithmetic works on ciphertexts: adding and multiplying them adds and multiplies the numbers inside. This tab " +
      `makes a secret key in a worker, where it stays until the page is closed. The scheme is CKKS with N = 2^${model.logN}${model.insecure ? "" : ", at 128-bit security"}. ` +
      (model.packing === "slots"
        ? "This tab encrypts once, and the server does the whole computation. "
        : `This tab encrypts modulo one prime of ${model.modulusBits} bits, and the server raises the modulus and computes. `) +
      `The model is named ${model.name}.`;
    if (!busy) forget();
    foretell();
    begun();
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
