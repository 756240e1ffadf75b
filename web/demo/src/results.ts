/** What the page shows with an answer: probabilities, bytes, times, and what the server saw. */

import type { Answer, KeyReport, Seen, Traffic } from "./client/dist/index.js";
import { bytes, element, exact, milliseconds, percent, row } from "./text.js";

/** exp(score), divided by the sum over all scores. */
export function softmax(scores: readonly number[]): number[] {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

/**
 * Shows an answer.
 *
 * @returns the answer in words.
 */
export function showAnswer(scores: readonly number[], names: readonly string[]): string {
  const labels = scores.map((_, i) => names[i] ?? String(i));
  const shares = softmax(scores);
  const best = scores.indexOf(Math.max(...scores));
  element("answer-section").hidden = element("digit").hidden = false;
  element("label").textContent = labels[best] ?? "";
  const words = labels.some((label) => label.length > 3);
  for (const id of ["digit", "scores"]) element(id).classList.toggle("words", words);
  element("scores").replaceChildren(
    ...shares.map((share, i) => {
      const [item, label, bar, fill, number] = ["li", "span", "span", "i", "span"].map((tag) =>
        document.createElement(tag),
      ) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];
      label.textContent = labels[i] ?? "";
      bar.className = "bar";
      fill.style.width = `${100 * share}%`;
      bar.append(fill);
      number.className = "number";
      number.textContent = percent(share);
      item.append(label, bar, number);
      return item;
    }),
  );
  return `The answer is ${labels[best]}, with a probability of ${percent(shares[best] ?? 0)}.`;
}

export function hideAnswer(): void {
  element("answer-section").hidden = element("digit").hidden = true;
  element("scores").replaceChildren();
}

/** The server's size of the last object in a direction whose description contains a word; null if it names none. */
function said(seen: Seen, direction: string, word: string): number | null {
  return seen.objects.filter((object) => object.direction === direction && object.what.includes(word)).at(-1)?.size ?? null;
}

/** Shows the bytes that this tab counted next to those that the server reports. */
export function showTravel(thing: string, keys: KeyReport, answer: Answer | null, traffic: Traffic, seen: Seen): void {
  const line = (what: string, counted: number, named: number | null) =>
    row(what, exact(counted), named === null ? "" : exact(named));
  const rows = [line("keys, once", keys.bytes, said(seen, "received", "keys"))];
  if (answer !== null) {
    rows.push(
      line(`encrypted ${thing}`, answer.sent, said(seen, "received", "ciphertext")),
      line("encrypted answer", answer.received, said(seen, "sent", "ciphertext")),
    );
  }
  rows.push(line("total sent", traffic.sent, null), line("total received", traffic.received, null));
  element("travel").replaceChildren(...rows);
  element("travel-section").hidden = false;
  element("travel-note").textContent =
    `The ${keys.keys} evaluation keys serve every ${thing} until this page is closed. The tab counts the bodies of its ` +
    `requests, ${exact(traffic.requests)} so far, without headers. This includes questions about progress, retries, and ` +
    "4 bytes for the length of each ciphertext, which the server does not count.";
}

export function showTime(keys: KeyReport, answer: Answer | null): void {
  const rows = [row("tab: makes keys, once", milliseconds(keys.making)), row("uploading keys, once", milliseconds(keys.sending))];
  if (answer !== null) {
    rows.push(
      row("tab: encrypts", milliseconds(answer.encrypting)),
      row("server: evaluates", milliseconds(answer.evaluating)),
      row("network and queue", milliseconds(answer.waiting)),
      row("tab: decrypts", milliseconds(answer.decrypting)),
    );
  }
  element("time").replaceChildren(...rows);
  element("time-section").hidden = false;
  element("time-note").textContent = `The module that made the keys held at most ${bytes(keys.peakMemory)} of memory.`;
}

export function showSeen(seen: Seen): void {
  element("seen-section").hidden = false;
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
