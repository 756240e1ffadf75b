/**
 * `node web/tests/pictures.mjs MODEL FOLDER [COUNT]`: serves a compiled model of pictures, drops images of FOLDER (a
 * folder of images for each label) on the page in Chromium, and prints its answers, their times and the bytes sent.
 * Uses those images of each label whose numbers are divisible by ten, which examples/cifar.py keeps for tests. Compares
 * every answer with that of the same network in the clear on the numbers that the page encrypted.
 */

import { execFileSync, spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../", import.meta.url));
const [model, folder, count = "10"] = process.argv.slice(2);
if (model === undefined || folder === undefined) throw new Error("usage: node web/tests/pictures.mjs MODEL FOLDER [COUNT]");
const timeout = 600_000;

/** Labels of the network in the clear, and the largest difference of a score. */
const CLEAR = `import json, sys
from pathlib import Path
import numpy as np
from keywright.runtime import run_clear
from keywright.model import Model
model, asked = Model.load(Path(sys.argv[1])), json.load(sys.stdin)
places = model.manifest.input.places
clear = [run_clear(model.program, np.asarray(pixels, float).reshape(places.shape) / 255).reshape(-1) for pixels in asked["pixels"]]
off = np.abs(np.asarray(clear) - np.asarray(asked["scores"])).max()
print(json.dumps({"labels": [model.labels[int(scores.argmax())] for scores in clear], "off": off}))`;

const server = spawn(join(root, ".venv/bin/keywright"), ["serve", model, "--page", join(root, "target/web"), "--port", "0", "--json"], {
  stdio: ["ignore", "pipe", "ignore"],
});
let url = null;
for await (const line of createInterface({ input: server.stdout })) {
  ({ url } = JSON.parse(line));
  break;
}
const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const { labels, name, key_bytes: keys } = await (await fetch(`${url}/v1/model`)).json();
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(url);
  await page.waitForFunction(() => document.getElementById("model").textContent.includes("CKKS"), null, { timeout });
  console.log(`${name}: ${labels.length} labels, ${keys} bytes of keys`);
  let right = 0;
  const [asked, answers] = [{ pixels: [], scores: [] }, []];
  for (let i = 0; i < Number(count); i++) {
    const label = labels[i % labels.length];
    const images = (await readdir(join(folder, label))).sort().filter((_, index) => index % 10 === 0);
    const image = images[Math.floor(i / labels.length) % images.length];
    await page.setInputFiles("#picture", join(folder, label, image));
    await page.waitForFunction(() => !document.getElementById("ask").disabled, null, { timeout });
    await page.evaluate(() => (document.getElementById("status").textContent = ""));
    const start = performance.now();
    await page.click("#ask");
    await page.waitForFunction(
      () => document.getElementById("status").textContent === "Decrypted in this tab." || !document.getElementById("error").hidden,
      null,
      { timeout },
    );
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const [error, answer] = await Promise.all(["#error", "#label"].map((id) => page.locator(id).textContent()));
    if (error) throw new Error(error);
    right += answer === label;
    answers.push(answer);
    asked.scores.push((await page.locator("#scores .number").allTextContents()).map(Number));
    // The encrypted numbers, channel by channel: those of the small picture.
    const pixels = await page.evaluate(() => {
      const small = document.getElementById("preview");
      const { data } = small.getContext("2d").getImageData(0, 0, small.width, small.height);
      return [0, 1, 2].flatMap((channel) => Array.from(data).filter((_, i) => i % 4 === channel));
    });
    asked.pixels.push(pixels);
    console.log(`${label} ${image}: ${answer}, ${seconds} s`);
  }
  for (const row of await page.locator("#travel tr").all()) console.log((await row.locator("th, td").allTextContents()).join(" | "));
  console.log(await page.locator("#keys-note").textContent());
  console.log(`${right} of ${count} right`);
  const { labels: clear, off } = JSON.parse(execFileSync(join(root, ".venv/bin/python"), ["-c", CLEAR, model], { input: JSON.stringify(asked), encoding: "utf8" }));
  const equal = clear.filter((label, i) => label === answers[i]).length;
  console.log(`${equal} of ${count} as in the clear; scores, shown with two digits, are off by at most ${off.toFixed(4)}`);
  if (equal !== answers.length) throw new Error(`in the clear: ${clear.join(", ")}`);
  await page.screenshot({ path: join(root, "target/web-screens", `${name}.png`), fullPage: true });
} finally {
  await browser.close();
  server.kill("SIGTERM");
}
