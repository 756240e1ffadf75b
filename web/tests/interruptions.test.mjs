/**
 * Uploads and answers that are cut, servers that are killed, several tabs at once: a user only notices that it takes
 * longer.
 */

import assert from "node:assert/strict";
import { readdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { answer, code, digits, draw, end, network, open, ready, setting } from "./harness.mjs";

const fixtures = setting();

/** Records the offsets of the pieces of keys, and the number of key sets that begin. */
function watch(page) {
  const seen = { offsets: [], sets: 0, jobs: 0 };
  page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (request.method() === "PATCH") seen.offsets.push(Number(request.headers()["upload-offset"]));
    if (request.method() === "POST" && pathname === "/v1/keys") seen.sets++;
    if (request.method() === "POST" && pathname.endsWith("/jobs")) seen.jobs++;
  });
  return seen;
}

async function asked(page, address, digit) {
  await ready(page, address);
  await draw(page, digits[digit]);
  await page.click("#ask");
}

test("keys, a ciphertext and an answer that are cut at any byte arrive", async () => {
  const [child, address] = await fixtures.place.serve(fixtures.model);
  const link = await network(address);
  const page = await open(fixtures.browser);
  const seen = watch(page);
  await ready(page, link.url);
  link.leave();
  link.away = false;
  link.up = () => 100_000 + Math.floor(300_000 * Math.random());
  await draw(page, digits[0]);
  await page.click("#ask");
  assert.equal(await answer(page), "0");
  assert.ok(link.breaks > 10, `${link.breaks} breaks`);
  assert.equal(seen.sets, 1);
  // The part of a cut piece that arrived is not sent again.
  assert.deepEqual(seen.offsets, [...new Set(seen.offsets)].sort((a, b) => a - b));
  assert.ok(seen.offsets.some((offset) => offset % 4096 !== 0));

  let connections = 0;
  link.up = () => (++connections < 3 ? 1500 : Infinity);
  link.down = () => (connections < 7 ? 5000 : Infinity);
  link.breaks = 0;
  link.leave();
  link.away = false;
  await page.click("#clear");
  await draw(page, digits[7]);
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  assert.ok(link.breaks >= 3, `${link.breaks} breaks`);
  assert.ok(seen.jobs >= 2, `${seen.jobs} times sent`);
  assert.deepEqual(page.problems, []);
  await page.context().close();
  link.close();
  await end(child, "SIGTERM");
});

test("a network that is away for some seconds is waited for, while keys are sent and while the server computes", async () => {
  const [child, address] = await fixtures.place.serve(fixtures.model);
  const link = await network(address);
  const page = await open(fixtures.browser);
  const seen = watch(page);
  const away = async () => {
    link.leave();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    link.away = false;
  };
  page.on("request", (request) => {
    if (seen.offsets.length === 2 && request.method() === "PATCH") void away();
    if (seen.jobs === 1 && request.url().endsWith("/jobs")) void away();
  });
  await asked(page, link.url, 1);
  assert.equal(await answer(page), "1");
  assert.equal(seen.sets, 1);
  await page.context().close();
  link.close();
  await end(child, "SIGTERM");
});

test("a server that is away for long gets the rest when it is back", async () => {
  const [child, address] = await fixtures.place.serve(fixtures.model);
  const link = await network(address);
  const page = await open(fixtures.browser);
  const seen = watch(page);
  page.on("request", () => seen.offsets.length > 1 && link.leave());
  await ready(page, link.url);
  await draw(page, digits[0]);
  await page.click("#ask");
  assert.equal(await code(page), "unreachable");
  assert.match(await page.locator("#error").textContent(), /Press the button to continue/);
  page.removeAllListeners("request");
  const again = watch(page);
  link.away = false;
  await page.click("#ask");
  assert.equal(await answer(page), "0");
  assert.deepEqual([seen.sets, again.sets], [1, 0]);
  assert.ok(again.offsets[0] > 0);
  await page.context().close();
  link.close();
  await end(child, "SIGTERM");
});

for (const [what, keeps] of [["goes on where it was, of a server that keeps its state", true], ["begins anew, of one that does not", false]]) {
  test(`an upload in whose middle the server is killed and started again ${what}`, async () => {
    const state = keeps ? ["--state", join(fixtures.place.folder, "kept")] : [];
    let [child, address] = await fixtures.place.serve(fixtures.model, ...state);
    const page = await open(fixtures.browser);
    const seen = watch(page);
    const killed = new Promise((resolve) => {
      page.on("request", async () => {
        if (seen.offsets.length !== 3 || seen.killed) return;
        seen.killed = true;
        await end(child, "SIGKILL");
        resolve();
      });
    });
    await asked(page, address, 0);
    await killed;
    // No button is pressed.
    [child] = await fixtures.place.serve(fixtures.model, ...state, "--port", new URL(address).port);
    assert.equal(await answer(page), "0");
    assert.equal(seen.sets, keeps ? 1 : 2);
    assert.equal(seen.offsets.filter((offset) => offset === 0).length, keeps ? 1 : 2);
    assert.deepEqual(page.problems, []);
    await page.context().close();
    await end(child, "SIGTERM");
  });
}

test("keys that a killed server lost are sent again", async () => {
  const state = join(fixtures.place.folder, "lost");
  let [child, address] = await fixtures.place.serve(fixtures.model, "--state", state);
  const page = await open(fixtures.browser);
  const seen = watch(page);
  const killed = new Promise((resolve) => {
    page.on("request", async () => {
      if (seen.offsets.length !== 4 || seen.killed) return;
      seen.killed = true;
      await end(child, "SIGKILL");
      resolve();
    });
  });
  await asked(page, address, 0);
  await killed;
  // Pieces that arrive in order are one object, a file.
  const entries = await readdir(join(state, "keys"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  assert.equal(files.length, 1);
  const [part] = files;
  const { size } = await stat(part);
  assert.ok(size > 100_000, `${size} bytes have come`);
  await truncate(part, size - 70_001);
  [child] = await fixtures.place.serve(fixtures.model, "--state", state, "--port", new URL(address).port);
  assert.equal(await answer(page), "0");
  assert.equal(seen.sets, 1);
  assert.ok(seen.offsets.includes(size - 70_001));
  await page.context().close();
  await end(child, "SIGTERM");
});

test("a server that forgot the keys between two questions gets new ones", async () => {
  let [child, address] = await fixtures.place.serve(fixtures.model);
  const page = await open(fixtures.browser);
  const seen = watch(page);
  await asked(page, address, 0);
  assert.equal(await answer(page), "0");
  await end(child, "SIGKILL");
  [child] = await fixtures.place.serve(fixtures.model, "--port", new URL(address).port);
  await page.click("#clear");
  await draw(page, digits[1]);
  await page.click("#ask");
  assert.equal(await answer(page), "1");
  assert.equal(seen.sets, 2);
  await page.context().close();
  await end(child, "SIGTERM");
});

test("keys that expired between two questions are made anew", async () => {
  const [child, address] = await fixtures.place.serve(fixtures.model, "--expiry", "10");
  const page = await open(fixtures.browser);
  const seen = watch(page);
  let keys = "";
  page.on("request", (request) => request.method() === "PATCH" && (keys = request.url().split("?")[0]));
  await asked(page, address, 0);
  assert.equal(await answer(page), "0");
  // Asking whether the keys exist counts as use, so this asks once, after they have expired.
  await new Promise((resolve) => setTimeout(resolve, 14_000));
  assert.equal((await fetch(keys)).status, 404);
  await page.click("#clear");
  await draw(page, digits[7]);
  await page.click("#ask");
  assert.equal(await answer(page), "7");
  assert.equal(seen.sets, 2);
  assert.deepEqual(page.problems, []);
  await page.context().close();
  await end(child, "SIGTERM");
});

test("a model that is served no more is followed to its next version", async () => {
  const state = ["--state", join(fixtures.place.folder, "versions")];
  let [child, address] = await fixtures.place.serve(fixtures.model, ...state);
  const page = await open(fixtures.browser);
  const refusals = [];
  page.on("response", (response) => response.status() === 410 && refusals.push(response.url()));
  await asked(page, address, 0);
  assert.equal(await answer(page), "0");
  await end(child, "SIGTERM");
  [child] = await fixtures.place.serve(await fixtures.place.compile("words"), ...state, "--port", new URL(address).port);
  await page.click("#clear");
  await draw(page, digits[7]);
  await page.click("#ask");
  assert.equal(await answer(page), "seven");
  assert.equal(refusals.length > 0, true);
  assert.deepEqual(page.problems, []);
  await page.context().close();
  await end(child, "SIGTERM");
});

test("two tabs at once each get their own answer", async () => {
  const [child, address] = await fixtures.place.serve(fixtures.model);
  // Both in one browser, like two tabs of one user.
  const first = await open(fixtures.browser);
  const second = await first.context().newPage();
  const seen = [watch(first), watch(second)];
  await second.bringToFront();
  await ready(second, address);
  await draw(second, digits[7]);
  await first.bringToFront();
  await ready(first, address);
  await draw(first, digits[0]);
  // A background tab is not painted, and still works.
  await first.click("#ask");
  await second.bringToFront();
  await second.click("#ask");
  await first.bringToFront();
  assert.equal(await answer(first), "0");
  await second.bringToFront();
  assert.equal(await answer(second), "7");
  assert.deepEqual(seen.map(({ sets }) => sets), [1, 1]);
  for (const page of [first, second]) assert.equal(await page.locator("#seen li").count(), 3);
  await first.context().close();
  await end(child, "SIGTERM");
});
