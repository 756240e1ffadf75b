/**
 * The page in a real Chromium: a user's actions, at both widths and in both colour schemes, and servers that misbehave.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { answer, code, digits, draw, insecurely, launch, open as openIn, ready as visit, screens, setting } from "./harness.mjs";

const SECRET = Buffer.from("\x89KWRT\r\n\x1a", "latin1");

let url;
const fixtures = setting(async ({ place, model }) => {
  [, url] = await place.serve(model);
});
const open = (options = {}, from = fixtures.browser) => openIn(from, options);
const ready = (page, address = url) => visit(page, address);

test("digits that are drawn are answered, and no secret leaves the tab", async () => {
  const page = await open();
  await ready(page);
  await draw(page, digits[0]);
  await page.click("#ask");
  assert.equal(await answer(page), "0");
  for (const digit of [1, 7]) {
    await page.click("#clear");
    await draw(page, digits[digit]);
    await page.click("#ask");
    await page.waitForFunction(() => !document.getElementById("status").textContent.endsWith("decrypted in this tab."));
    assert.equal(await answer(page), String(digit));
  }
  // The page's list of what the server saw equals what left the page.
  const seen = await page.locator("#seen li").allTextContents();
  assert.equal(seen.filter((text) => text.startsWith("received: a set of switching keys")).length, 1);
  assert.equal(seen.filter((text) => text.startsWith("received: a compact CKKS ciphertext")).length, 3);
  assert.equal(seen.filter((text) => text.startsWith("sent: a CKKS ciphertext")).length, 3);
  assert.ok(page.sent.length > 4);
  for (const body of page.sent) {
    for (let at = body.indexOf(SECRET); at >= 0; at = body.indexOf(SECRET, at + 1)) assert.ok(body[at + 11] < 0x80);
  }
  // The tab's counts equal the server's, plus the length of a ciphertext, and equal what left the page.
  const lines = (await page.locator("#travel tr").allInnerTexts()).map((line) => line.split("\t").map((cell) => Number(cell.replaceAll(",", ""))));
  assert.equal(lines.length, 5);
  for (const [at, difference] of [0, 4, 4].entries()) assert.equal(lines[at][1] - lines[at][2], difference);
  assert.equal(lines[3][1], page.sent.reduce((sum, body) => sum + body.length, 0));
  const shares = (await page.locator("#scores .number").allTextContents()).map(Number.parseFloat);
  assert.equal(shares.length, 10);
  assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) <= 0.5 + 1e-9, `probabilities ${shares}`);
  const widths = await page.locator("#scores i").evaluateAll((bars) => bars.map((bar) => Number.parseFloat(bar.style.width)));
  widths.forEach((width, i) => assert.ok(Math.abs(width - shares[i]) <= 0.05 + 1e-9, `a bar of ${width} for ${shares[i]} %`));
  assert.match(await page.locator("#status").textContent(), /^The answer is 7, with a probability of [0-9.]+ %\. It was decrypted in this tab\.$/);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("everything can be done with the keyboard, at the width of a phone, in the dark", async () => {
  const page = await open({ viewport: { width: 360, height: 740 }, colorScheme: "dark", hasTouch: true });
  await ready(page);
  const key = async (name, times = 1) => {
    for (let i = 0; i < times; i++) await page.keyboard.press(name);
  };
  await key("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "canvas");
  // A one: up, pen down, and down the whole height.
  await key("ArrowUp", 12);
  await key("Space");
  await key("ArrowDown", 24);
  await key("Space");
  for (const next of ["picture", "example", "clear", "ask"]) {
    await key("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), next);
  }
  await key("Enter");
  assert.equal(await answer(page), "1");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${wide} pixels too wide`);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("sizes are announced before anything is sent", async () => {
  const page = await open();
  await ready(page);
  const words = await page.locator("#cost").textContent();
  assert.match(words, /^The first answer: (about [0-9]+ s|less than a second), most of it while you draw\./);
  assert.match(words, /makes keys and sends [0-9.]+ MB of them, once\. Then it sends an encrypted digit of [0-9.]+ k?B; the answer is [0-9.]+ k?B/);
  assert.equal(page.sent.length, 0);
  // What has no content yet takes no place.
  for (const part of ["answer", "views", "travel", "time", "seen"]) assert.equal(await page.locator(`#${part}-section`).isVisible(), false);
  await page.context().close();
});

test("keys go while the visitor draws, and a question that was never asked sends no ciphertext", async () => {
  const page = await open();
  const jobs = [];
  page.on("request", (request) => request.url().endsWith("/jobs") && jobs.push(request.url()));
  await ready(page);
  await draw(page, digits[7]);
  await page.waitForFunction(() => document.getElementById("cost").textContent.startsWith("The next answer"));
  assert.equal(await page.locator("#status").textContent(), "Draw a digit and press the button.");
  assert.equal(await page.locator("#cancel").isVisible(), false);
  assert.deepEqual(jobs, []);
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  assert.equal(jobs.length, 1);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("whoever cancels the keys while drawing gets them only with the next question", async () => {
  const page = await open();
  let slow = true;
  await page.context().route("**/v1/keys/**", async (route) => {
    if (slow) await new Promise((resolve) => setTimeout(resolve, 300));
    return route.continue().catch(() => undefined);
  });
  await ready(page);
  await draw(page, digits[1]);
  await page.waitForFunction(() => document.getElementById("progress").value > 0);
  await page.click("#cancel");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Cancelled. The server keeps"));
  const before = page.sent.length;
  await page.click("#clear");
  await draw(page, digits[7]);
  await page.waitForTimeout(500);
  assert.equal(page.sent.length, before);
  slow = false;
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a model for slots has small keys, and its first answer comes as promised", async () => {
  const [, address] = await fixtures.place.serve(await fixtures.place.compile("slots"));
  // Without a look at every byte that is sent, which takes longer than sending it.
  const page = await (await fixtures.browser.newContext()).newPage();
  page.setDefaultTimeout(0);
  await page.goto(address);
  await page.waitForFunction(() => document.getElementById("cost").dataset.seconds !== undefined);
  assert.equal(await page.locator("#insecure").isVisible(), false);
  const promised = Number(await page.locator("#cost").getAttribute("data-seconds"));
  const start = performance.now();
  await draw(page, digits[7]);
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  const seconds = (performance.now() - start) / 1000;
  const lines = Object.fromEntries((await page.locator("#travel tr").allInnerTexts()).map((line) => line.split("\t")));
  const sent = Number(lines["total sent"].replaceAll(",", ""));
  console.log(`first answer ${seconds.toFixed(1)} s after the first stroke, promised ${promised} s; ${sent} bytes sent`);
  assert.ok(seconds <= 2 * promised, `${seconds} s, promised ${promised}`);
  assert.ok(sent <= 40e6, `${sent} bytes`);
  const bodies = [];
  page.on("request", (request) => request.url().endsWith("/jobs") && bodies.push(request.postDataBuffer()));
  await page.click("#clear");
  await draw(page, digits[1]);
  await page.click("#ask");
  assert.equal(await answer(page), "1");
  // The server's view is bytes of what it got, and they look random.
  const drawn = await page.evaluate(() => {
    const view = document.getElementById("theirs");
    return Array.from(view.getContext("2d").getImageData(0, 0, view.width, view.height).data).filter((_, i) => i % 4 === 0);
  });
  assert.ok(bodies.some((body) => body.includes(Buffer.from(drawn))), "the drawn bytes were not sent");
  const counts = new Array(256).fill(0);
  drawn.forEach((byte) => counts[byte]++);
  const each = drawn.length / 256;
  const chi = counts.reduce((sum, count) => sum + (count - each) ** 2 / each, 0);
  assert.ok(Math.abs(chi - 255) < 6 * Math.sqrt(2 * 255), `chi squared of ${drawn.length} bytes is ${chi}`);
  assert.equal(await page.locator("#own").evaluate((view) => view.width * view.height), 64);
  await page.context().close();
});

test("examples need no drawing, and what happens is said", async () => {
  const page = await open();
  await ready(page);
  assert.equal(await page.locator("#canvas").getAttribute("aria-label"), "Empty");
  for (const digit of ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]) {
    await page.locator("#example").selectOption(digit);
    assert.equal(await page.locator("#canvas").getAttribute("aria-label"), `The example ${digit}`);
    await page.click("#ask");
    assert.equal(await answer(page), digit);
  }
  await page.locator("#canvas").focus();
  await page.keyboard.press("Space");
  assert.equal(await page.locator("#announcer").textContent(), "Brush down, 50 percent from the left, 50 from the top.");
  assert.equal(await page.locator("#canvas").getAttribute("aria-label"), "A drawing of 1 stroke");
  assert.equal(await page.locator("#example").inputValue(), "");
  assert.equal(await page.locator("#digit").isVisible(), false);
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.locator("#announcer").textContent(), "50 percent from the left, 47 from the top");
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("keys that are cancelled go on where they were, and a question that is cancelled is asked again", async () => {
  const page = await open();
  let slow = true;
  await page.context().route("**/v1/keys/**", async (route) => {
    if (slow) await new Promise((resolve) => setTimeout(resolve, 300));
    return route.continue().catch(() => undefined);
  });
  await ready(page);
  await draw(page, digits[7]);
  await page.click("#ask");
  await page.waitForFunction(() => document.getElementById("progress").value > 0);
  await page.click("#cancel");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("Cancelled. The server keeps"));
  assert.equal(await page.locator("#cancel").isVisible(), false);
  assert.equal(await page.evaluate(() => document.activeElement.id), "ask");
  const offsets = [];
  page.on("request", (request) => request.method() === "PATCH" && offsets.push(Number(request.headers()["upload-offset"])));
  slow = false;
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  assert.ok(offsets[0] > 0, `it went on at byte ${offsets[0]}`);
  // A question while the server does not answer about its job.
  let held = true;
  await page.context().route("**/v1/jobs/*", async (route) => (held ? undefined : route.continue()));
  const puts = offsets.length;
  await page.click("#ask");
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("The server computes"));
  await page.click("#cancel");
  await page.waitForFunction(() => document.getElementById("status").textContent === "Cancelled.");
  assert.equal(await page.locator("#error").isVisible(), false);
  held = false;
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  assert.equal(offsets.length, puts);
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

test("a picture is read, and one that is none is refused", async () => {
  const page = await open({ colorScheme: "dark" });
  await ready(page);
  await page.setInputFiles("#picture", { name: "notes.png", mimeType: "image/png", buffer: Buffer.from("no picture") });
  await page.locator("#error").waitFor({ state: "visible" });
  assert.match(await page.locator("#error").textContent(), /notes\.png is not a picture/);
  const png = await page.evaluate(() => {
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [120, 120];
    const pen = sheet.getContext("2d");
    pen.fillStyle = "white";
    pen.fillRect(0, 0, 120, 120);
    [pen.strokeStyle, pen.lineWidth] = ["black", 11];
    pen.beginPath();
    pen.ellipse(60, 60, 24, 42, 0, 0, 7);
    pen.stroke();
    return sheet.toDataURL().split(",")[1];
  });
  await page.setInputFiles("#picture", { name: "zero.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") });
  await page.waitForFunction(() => document.getElementById("error").hidden && !document.getElementById("ask").disabled);
  await page.click("#ask");
  assert.equal(await answer(page), "0");
  await page.context().close();
});

test("keys are deleted on the server when the page is left", async () => {
  const page = await open();
  const sent = page.waitForRequest((request) => request.method() === "PATCH");
  await ready(page);
  await draw(page, digits[1]);
  await page.click("#ask");
  const keys = (await sent).url().split("?")[0];
  assert.equal(await answer(page), "1");
  assert.equal((await fetch(keys)).status, 200);
  await page.goto("about:blank");
  let status = 200;
  while (status === 200) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    status = (await fetch(keys)).status;
  }
  assert.equal(status, 404);
  await page.context().close();
});

test("a model of pictures takes pictures and shows words", async () => {
  const [, address] = await fixtures.place.serve(await fixtures.place.compile("colours"));
  for (const [name, options] of [
    ["picture-light", {}],
    ["picture-phone-dark", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }],
  ]) {
    const page = await open(options);
    await ready(page, address);
    assert.equal(await page.title(), "A picture that the server never sees");
    assert.equal(await page.locator("#ask").isDisabled(), true);
    const png = await page.evaluate(() => {
      const sheet = document.createElement("canvas");
      [sheet.width, sheet.height] = [96, 64];
      const pen = sheet.getContext("2d");
      const sky = pen.createLinearGradient(0, 0, 0, 64);
      sky.addColorStop(0, "#d8ecff");
      sky.addColorStop(0.5, "#88b04b");
      sky.addColorStop(1, "#2e5c1e");
      pen.fillStyle = sky;
      pen.fillRect(0, 0, 96, 64);
      return sheet.toDataURL().split(",")[1];
    });
    const file = { name: "meadow.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") };
    await page.setInputFiles("#picture", file);
    await page.waitForFunction(() => !document.getElementById("ask").disabled);
    // With the keyboard: focus reaches the button, and a key presses it.
    await page.locator("#ask").focus();
    await page.keyboard.press("Enter");
    assert.equal(await answer(page), "green");
    await page.screenshot({ path: join(screens, `${name}.png`), fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${wide} pixels too wide`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("parameters without security are refused, and whoever accepts them in the address keeps seeing a warning", async () => {
  const page = await open();
  await page.goto(url);
  assert.equal(await code(page), "insecure");
  assert.equal(await page.locator("#ask").isDisabled(), true);
  await visit(page, url);
  assert.equal(await page.locator("#insecure").isVisible(), true);
  await page.context().close();
});

const manifest = async () => (await fetch(`${url}/v1/model`)).json();
const json = (body, status = 200) => ({ status, contentType: "application/json", body: JSON.stringify(body) });

for (const [name, reply, expected] of [
  ["is garbage", () => ({ body: "<html>" }), "manifest"],
  ["is of another version", async () => json({ ...(await manifest()), version: 1 }), "manifest"],
  ["is for pictures that the page has no input for", async () => json({ ...(await manifest()), input: { ...(await manifest()).input, shape: [64] } }), "other_model"],
  ["has a packing that nobody knows", async () => json({ ...(await manifest()), packing: "bits" }), "manifest"],
  ["has a level that does not fit its packing", async () => json({ ...(await manifest()), input_level: 3 }), "manifest"],
  ["calls parameters secure that are not", async () => json({ ...(await manifest()), insecure: false }), "manifest"],
  ["names another prime than its parameters", async () => json({ ...(await manifest()), modulus: "1073479681" }), "manifest"],
  ["has null for bytes", async () => json({ ...(await manifest()), key_set: null }), "manifest"],
  ["contradicts itself", async () => json({ ...(await manifest()), input: { ...(await manifest()).input, start: [1] } }), "manifest"],
  ["does not come", () => null, "unreachable"],
  ["is refused", () => json({ error: { type: "busy", message: "Too many clients; ask again later.", details: {} } }, 503), "busy"],
]) {
  test(`a manifest that ${name} is named`, async () => {
    const page = await open();
    await page.context().route("**/v1/model", async (route) => {
      const answer = await reply();
      return answer === null ? route.abort() : route.fulfill(answer);
    });
    await page.goto(insecurely(url));
    assert.equal(await code(page), expected);
    assert.equal(await page.locator("#ask").isDisabled(), true);
    await page.context().close();
  });
}

for (const [name, path, reply, expected] of [
  ["garbage for an answer", "**/v1/jobs/*/result", () => ({ body: Buffer.from("garbage") }), "invalid_reply"],
  ["half an answer", "**/v1/jobs/*/result", (body) => ({ body: body.subarray(0, body.length / 2) }), "invalid_reply"],
  ["a damaged answer", "**/v1/jobs/*/result", (body) => ({ body: Buffer.concat([body.subarray(0, 200), Buffer.from([body[200] ^ 1]), body.subarray(201)]) }), "format"],
  ["an answer that never ends", "**/v1/jobs/*/result", () => ({ body: Buffer.alloc(1 << 20) }), "invalid_reply"],
  ["no JSON for a job", "**/v1/keys/*/jobs", () => ({ body: "[]" }), "invalid_reply"],
  ["the keys' model away", "**/v1/keys", () => json({ error: { type: "other_model", message: "The keys are for another model.", details: {} } }, 409), "other_model"],
]) {
  test(`a server that gives ${name} is named`, async () => {
    const page = await open();
    await ready(page);
    await page.context().route(path, async (route) => {
      const body = path.endsWith("result") ? await (await route.fetch()).body() : null;
      return route.fulfill({ headers: {}, ...reply(body) });
    });
    await draw(page, digits[1]);
    await page.click("#ask");
    assert.equal(await code(page), expected);
    await page.context().close();
  });
}

test("without randomness nothing starts", async () => {
  const page = await open();
  await page.context().route("**/client/dist/worker.js", async (route) => {
    const source = await (await route.fetch()).text();
    const hide = "Object.defineProperty(crypto, 'getRandomValues', { value: undefined });\n";
    return route.fulfill({ contentType: "text/javascript", body: hide + source });
  });
  await ready(page);
  await draw(page, digits[1]);
  await page.click("#ask");
  assert.equal(await code(page), "randomness");
  await page.context().close();
});

test("a tab that cannot have the memory says so", async () => {
  const small = await launch(["--js-flags=--wasm-max-mem-pages=512"]);
  const page = await open({}, small);
  await ready(page);
  await draw(page, digits[1]);
  await page.click("#ask");
  assert.equal(await code(page), "memory");
  await small.close();
});

test("memory that is refused while keys are made is an error with a code, and nothing is left on the server", async () => {
  const small = await launch(["--js-flags=--wasm-max-mem-pages=19"]);
  const page = await open({}, small);
  // The worker requests all of its memory first, which is refused here: skip that request.
  await page.context().route("**/client/dist/worker.js", async (route) => {
    const source = await (await route.fetch()).text();
    const asked = "new WebAssembly.Memory(";
    assert.ok(source.includes(asked));
    return route.fulfill({ contentType: "text/javascript", body: source.replace(asked, "(") });
  });
  const keys = [];
  page.on("request", (request) => request.method() === "PATCH" && keys.push(request.url().split("?")[0]));
  await ready(page);
  await draw(page, digits[1]);
  await page.click("#ask");
  assert.equal(await code(page), "memory");
  for (const address of new Set(keys)) assert.equal((await fetch(address)).status, 404);
  await small.close();
});

/** The contrast of text (WCAG 2.2) for every visible element with text of its own. */
const faint = () => {
  const parse = (colour) => {
    const sheet = new OffscreenCanvas(1, 1).getContext("2d");
    sheet.fillStyle = colour;
    sheet.fillRect(0, 0, 1, 1);
    return [...sheet.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) && node.checkVisibility() && !node.disabled)
    .map((node) => {
      const [one, other] = [parse(getComputedStyle(node).color), behind(node)].map(luminance);
      return [node.id || node.tagName, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)];
    })
    .filter(([, contrast]) => contrast < 4.5);
};

for (const [name, options] of [
  ["phone-light", { viewport: { width: 360, height: 740 } }],
  ["phone-dark", { viewport: { width: 360, height: 740 }, colorScheme: "dark" }],
  ["desktop-light", {}],
  ["desktop-dark", { colorScheme: "dark" }],
]) {
  test(`every step can be read: ${name}`, async () => {
    const page = await open(options);
    const step = async (what, fullPage = true) => {
      await page.screenshot({ path: join(screens, `${name}-${what}.png`), fullPage });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${what}: ${wide} pixels too wide`);
      assert.deepEqual(await page.evaluate(faint), [], what);
    };
    // A network and a server that are slow enough to observe.
    let slow = true;
    const later = () => new Promise((resolve) => setTimeout(resolve, slow ? 400 : 0));
    // The fourth piece of the keys waits until the test has read the remaining time.
    let [pieces, read] = [0, () => {}];
    const held = new Promise((resolve) => (read = resolve));
    await page.context().route("**/v1/keys/**", async (route) => {
      await later();
      if (route.request().method() === "PATCH" && ++pieces === 4) await held;
      return route.continue();
    });
    await page.context().route("**/v1/jobs/*", async (route) => (await later(), route.continue()));
    await ready(page);
    await page.keyboard.press("Tab");
    await step("1-start");
    await draw(page, digits[7]);
    await page.click("#ask");
    await page.waitForFunction(() => document.getElementById("amount").textContent.includes("s to go"));
    // In the visible area, without scrolling: where the answer will be.
    await step("2-keys", false);
    read();
    const seen = await page.locator("#amount").evaluate((node) => node.getBoundingClientRect().bottom <= innerHeight);
    assert.ok(seen, "what happens is below the fold");
    await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("The server computes"));
    await step("3-computing", false);
    assert.equal(await answer(page), "7");
    await step("4-answer");
    // A user who pressed the button with the keyboard still has the focus there.
    assert.equal(await page.evaluate(() => document.activeElement.id), "ask");
    slow = false;
    await page.click("#clear");
    assert.equal(await page.locator("#digit").isVisible(), false);
    await draw(page, digits[1]);
    await page.context().route("**/v1/jobs/*/result", (route) => route.fulfill({ body: "garbage" }));
    await page.click("#ask");
    assert.equal(await code(page), "invalid_reply");
    await step("5-error");
    assert.deepEqual(page.problems, []);
    await page.context().close();
  });
}
