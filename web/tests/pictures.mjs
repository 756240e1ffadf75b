/**
 * `node web/tests/pictures.mjs MODEL FOLDER [COUNT]`: serves a compiled model of pictures, drops images of FOLDER (a folder of images for each label) on the page in Chromium, and says what it answered,
 * how long that took and what travelled. Of each label's images those with numbers divisible by ten, which examples/cifar.py keeps for tests.
 */

import { spawn } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../", import.meta.url));
const [model, folder, count = "10"] = process.argv.slice(2);
if (model === undefined || folder === undefined) throw new Error("usage: node web/tests/pictures.mjs MODEL FOLDER [COUNT]");
const timeout = 600_000;
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
  await page.waitForFunction(() => document.getElementById("model").textContent.includes("boosted deflation"), null, { timeout });
  console.log(`${name}: ${labels.length} labels, ${keys} bytes of keys`);
  let right = 0;
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
    const [error, found] = await Promise.all(["#error", "#label"].map((id) => page.locator(id).textContent()));
    if (error) throw new Error(error);
    right += found === label;
    console.log(`${label} ${image}: ${found}, ${seconds} s`);
  }
  for (const row of await page.locator("#travel tr").all()) console.log((await row.locator("th, td").allTextContents()).join(" | "));
  console.log(await page.locator("#keys-note").textContent());
  console.log(`${right} of ${count} right`);
  await page.screenshot({ path: join(root, "target/web-screens", `${name}.png`), fullPage: true });
} finally {
  await browser.close();
  server.kill("SIGTERM");
}
