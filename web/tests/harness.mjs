/** The page in a real Chromium, its server, and a network between them that breaks. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const bin = join(root, ".venv", "bin");
export const screens = join(root, "target", "web-screens");

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export function launch(args = []) {
  // The sandbox needs privileges that containers and root do not have.
  return chromium.launch({ executablePath, args: ["--no-sandbox", ...args], timeout: 0 });
}

export async function run(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  const status = await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(status, 0, `${command} ${args.join(" ")}`);
}

/** Models in a folder that `remove` deletes, and their servers that are still running. */
export async function workplace() {
  const folder = await mkdtemp(join(tmpdir(), "keywright-page."));
  await mkdir(screens, { recursive: true });
  const children = new Set();
  const compile = async (kind) => {
    const model = join(folder, kind);
    await run(join(bin, "python"), [join(root, "web", "tests", "small_model.py"), model, kind]);
    return model;
  };
  const serve = async (model, ...options) => {
    const child = spawn(
      join(bin, "keywright"),
      ["serve", model, "--page", join(root, "target", "web"), "--port", "0", "--json", ...options],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    children.add(child);
    for await (const line of createInterface({ input: child.stdout })) return [child, JSON.parse(line).url];
    throw new Error("the server does not start");
  };
  const remove = async () => {
    await Promise.all([...children].map((child) => end(child, "SIGTERM")));
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, compile, serve, remove };
}

/**
 * The fixtures of a file's tests, made before the first and removed after the last: a browser, a workplace, the folder
 * of the digit model, and the additions of `then`.
 */
export function setting(then = async () => {}) {
  const fixtures = { browser: null, place: null, model: "" };
  before(async () => {
    fixtures.place = await workplace();
    fixtures.model = await fixtures.place.compile("digits");
    fixtures.browser = await launch();
    await then(fixtures);
  });
  after(async () => {
    await fixtures.browser?.close();
    await fixtures.place?.remove();
  });
  return fixtures;
}

export async function end(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.on("exit", resolve));
  child.kill(signal);
  await ended;
}

/** A page that records its errors, and every byte that leaves it. */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  // What waits for ever is ended by the limit of `make web-test`.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  page.problems = [];
  page.sent = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("Failed to load resource")) {
      page.problems.push(message.text());
    }
  });
  page.on("request", (request) => {
    const body = request.postDataBuffer();
    if (body) page.sent.push(body);
  });
  return page;
}

/** The page of an address, for its small model without security. */
export function insecurely(address) {
  const url = new URL(address);
  url.searchParams.set("insecure", "");
  return url.href;
}

export async function ready(page, address) {
  await page.goto(insecurely(address));
  await page.waitForFunction(() => document.getElementById("model").textContent.includes("CKKS"));
}

/** Strokes in fractions of the drawing area. */
export async function draw(page, strokes) {
  await page.locator("#canvas").scrollIntoViewIfNeeded();
  const box = await page.locator("#canvas").boundingBox();
  for (const stroke of strokes) {
    const points = stroke.map(([x, y]) => [box.x + x * box.width, box.y + y * box.height]);
    await page.mouse.move(...points[0]);
    await page.mouse.down();
    for (const point of points.slice(1)) await page.mouse.move(...point, { steps: 6 });
    await page.mouse.up();
  }
}

const circle = Array.from({ length: 25 }, (_, i) => {
  const angle = (i * Math.PI) / 12;
  return [0.5 + 0.22 * Math.sin(angle), 0.5 - 0.36 * Math.cos(angle)];
});
export const digits = {
  0: [circle],
  1: [[[0.4, 0.25], [0.52, 0.1], [0.52, 0.9]]],
  7: [[[0.25, 0.15], [0.72, 0.15], [0.45, 0.9]], [[0.32, 0.5], [0.7, 0.5]]],
};

export async function answer(page) {
  await page.locator("#digit").waitFor({ state: "visible" });
  await page.waitForFunction(() => document.getElementById("status").textContent.endsWith("decrypted in this tab."));
  return page.locator("#label").textContent();
}

export async function code(page) {
  await page.locator("#error").waitFor({ state: "visible" });
  const text = await page.locator("#error").textContent();
  assert.ok(text.length > 20, text);
  return page.locator("#error").getAttribute("data-code");
}

/**
 * Connections to a server that break. Each direction breaks after the bytes that `up` and `down` name when it begins,
 * and all of them break while `away`.
 */
export async function network(address) {
  const link = { away: false, up: () => Infinity, down: () => Infinity, breaks: 0, url: "", close: null };
  const open = new Set();
  const listener = createServer((near) => {
    if (link.away) return near.destroy();
    const far = connect(Number(new URL(address).port), "127.0.0.1");
    const both = [near, far];
    both.forEach((socket) => open.add(socket));
    const cut = () => {
      for (const socket of both) {
        socket.destroy();
        open.delete(socket);
      }
    };
    const forward = (from, to, limit) => {
      let left = limit;
      from.on("data", (data) => {
        to.write(data.subarray(0, left));
        left -= data.length;
        if (left > 0) return;
        link.breaks++;
        // Bytes written before it connects.
        to.end(cut);
        from.destroy();
      });
      from.on("error", cut);
      from.on("close", cut);
    };
    forward(near, far, link.up());
    forward(far, near, link.down());
  });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  link.url = `http://127.0.0.1:${listener.address().port}`;
  link.leave = () => {
    link.away = true;
    open.forEach((socket) => socket.destroy());
  };
  link.close = () => {
    open.forEach((socket) => socket.destroy());
    listener.close();
  };
  return link;
}
