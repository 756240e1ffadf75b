/**
 * `node web/bench/first_answer.mjs MODEL`: seconds from the first stroke to the first answer, including the keys, in
 * Chromium with `keywright serve` on the same machine. The button is pressed at once, so nothing hides behind drawing.
 *
 * Every run uses a new browser, a new server and new keys, and compares the answer with the label of the example.
 * `--runs N`; `--out FILE` adds the runs to a record, and `--note TEXT` adds the state of the machine.
 */

import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { workplace } from "../tests/harness.mjs";
import { bareBrowser } from "./bare_browser.mjs";

const { values: options, positionals } = parseArgs({
  options: { runs: { type: "string", default: "3" }, out: { type: "string" }, note: { type: "string" } },
  allowPositionals: true,
});
const [model] = positionals;
if (model === undefined) throw new Error("name a model: the folder that keywright compile wrote for the digits");
const EXAMPLE = "7";
const READY = "document.getElementById('model')?.textContent.includes('CKKS') ?? false";
const ASK = `(async () => {
  const promised = Number(document.getElementById("cost").dataset.seconds);
  const start = performance.now();
  const example = document.getElementById("example");
  example.value = "${EXAMPLE}";
  example.dispatchEvent(new Event("change", { bubbles: true }));
  const ended = new Promise((resolve, reject) => {
    const look = () => {
      const [status, error] = ["status", "error"].map((id) => document.getElementById(id));
      if (status.textContent.endsWith("decrypted in this tab.")) resolve(performance.now() - start);
      else if (!error.hidden) reject(new Error(error.textContent));
      else return;
      observer.disconnect();
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  });
  document.getElementById("ask").click();
  const total = await ended;
  const cells = [...document.querySelectorAll("#time tr")].map((row) => [row.cells[0].textContent, row.cells[1].textContent]);
  return { total, promised, label: document.getElementById("label").textContent, parts: Object.fromEntries(cells) };
})()`;

/** Seconds of "1.2 s" or "12 ms". */
const seconds = (text) => Number.parseFloat(text) / (text.endsWith(" ms") ? 1000 : 1);

async function once() {
  const place = await workplace();
  try {
    const [, url] = await place.serve(model);
    const { key_bytes: bytes } = await (await fetch(`${url}/v1/model`)).json();
    const browser = await bareBrowser();
    const page = await browser.open(url);
    while (!(await page.evaluate(READY))) await new Promise((resolve) => setTimeout(resolve, 100));
    const { total, promised, label, parts } = await page.evaluate(ASK);
    await browser.close();
    if (label !== EXAMPLE) throw new Error(`the answer is ${label}, the example a ${EXAMPLE}`);
    const each = Object.fromEntries(Object.entries(parts).map(([what, text]) => [what, seconds(text)]));
    return { browser: browser.version, key_bytes: bytes, promised, total: total / 1000, parts: each };
  } finally {
    await place.remove();
  }
}

const record = { processor: cpus()[0].model, cores: cpus().length, runs: [] };
if (options.out !== undefined && existsSync(options.out)) record.runs = JSON.parse(await readFile(options.out, "utf8")).runs;
for (let run = 0; run < Number(options.runs); run++) {
  const state = { at: new Date().toISOString(), load: loadavg()[0], ...(options.note === undefined ? {} : { note: options.note }) };
  record.runs.push({ ...state, ...(await once()) });
  console.log(JSON.stringify(record.runs.at(-1)));
}
if (options.out !== undefined) await writeFile(options.out, `${JSON.stringify(record, null, 2)}\n`);
