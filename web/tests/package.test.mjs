/**
 * The npm package: its content, its README's program under a strict compiler and in Chromium, and every error that a
 * caller can cause.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { launch, open, ready, root, setting } from "./harness.mjs";

let url;
const fixtures = setting(async ({ place, model }) => {
  [, url] = await place.serve(model);
});

/** The README's program, compiled with the packed package as its dependency. */
async function compiled() {
  const folder = join(fixtures.place.folder, "caller");
  const installed = join(folder, "node_modules", "keywright-client");
  await mkdir(installed, { recursive: true });
  const packing = ["pack", "--json", "--pack-destination", folder];
  const [{ files, filename, size }] = JSON.parse(
    execFileSync("npm", packing, { cwd: join(root, "web", "client"), encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  );
  execFileSync("tar", ["xzf", join(folder, filename), "-C", installed, "--strip-components=1"]);
  const readme = await readFile(join(installed, "README.md"), "utf8");
  await writeFile(join(folder, "classify.ts"), /```ts\n([\s\S]*?)```/.exec(readme)[1]);
  await writeFile(
    join(folder, "module.ts"),
    `import load, { Client, type KeyStream } from "keywright-client/wasm";
export async function stream(parameters: Uint8Array, keys: Uint8Array, head: Uint8Array): Promise<KeyStream> {
  await load();
  return new Client(parameters, crypto.getRandomValues(new Uint8Array(32))).keyStream(keys, head);
}
`,
  );
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "es2022", module: "es2022", moduleResolution: "bundler", lib: ["es2022", "esnext.disposable", "dom"], types: [],
        strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, outDir: "out",
      },
      files: ["classify.ts", "module.ts"],
    }),
  );
  execFileSync(join(root, "web/node_modules/.bin/tsc"), ["-p", folder], { stdio: ["ignore", "inherit", "inherit"] });
  return { names: files.map(({ path }) => path).sort(), size, program: await readFile(join(folder, "out", "classify.js"), "utf8") };
}

test("the package has what belongs in it, and its README's program compiles and answers", async () => {
  const { names, size, program } = await compiled();
  const modules = ["errors", "index", "manifest", "owner", "protocol", "server", "worker"].flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`]);
  const wasm = [".d.ts", ".js", "_bg.wasm", "_bg.wasm.d.ts"].map((end) => `dist/wasm/keywright_client_wasm${end}`);
  assert.deepEqual(names, ["LICENSE", "README.md", ...modules, ...wasm, "package.json"].sort());
  assert.ok(size < 350_000, `${size} bytes`);

  const page = await open(fixtures.browser);
  await page.context().route("**/classify.js", (route) =>
    route.fulfill({ contentType: "text/javascript", body: program.replace('"keywright-client"', '"/client/dist/index.js"') }),
  );
  // At 128 bits: the README's program accepts nothing else.
  const [, address] = await fixtures.place.serve(await fixtures.place.compile("slots"));
  await ready(page, address);
  const scores = await page.evaluate(async () => {
    const { classify } = await import("/classify.js");
    // A stroke down the middle.
    return [...(await classify(Array.from({ length: 64 }, (_, i) => (i % 8 === 3 || i % 8 === 4 ? 1 : 0)), "")).entries()];
  });
  assert.equal(scores.length, 10);
  assert.equal(scores.sort(([, a], [, b]) => b - a)[0][0], "1");
  await page.context().close();
});

/** Runs work in the page with the package, and returns the codes of its errors. */
async function codes(page, work) {
  await page.addInitScript(() => {
    globalThis.codeOf = async (work) => {
      try {
        await work();
        return null;
      } catch (error) {
        const { ClientError } = await import("/client/dist/index.js");
        return error instanceof ClientError && error.message.length > 20 ? error.code : `untyped: ${error}`;
      }
    };
  });
  await ready(page, url);
  return page.evaluate(work);
}

test("what a caller gets wrong has a code", async () => {
  const page = await open(fixtures.browser);
  const sets = [];
  page.on("request", (request) => request.url().endsWith("/v1/keys") && sets.push(request));
  const observed = await codes(page, async () => {
    const { Session } = await import("/client/dist/index.js");
    const zeros = (count, first = 0) => [first, ...new Array(count - 1).fill(0)];
    const session = new Session();
    const codes = [];
    const add = async (work) => codes.push(await codeOf(work));
    await add(() => session.infer(zeros(64)));
    await add(() => session.prepareKeys());
    await add(() => session.connect("", "0".repeat(64)));
    await add(() => session.connect());
    const { inputRange } = await session.connect("", null, { insecure: true });
    codes.push(JSON.stringify(inputRange));
    // Before there is a key.
    await add(() => session.check(zeros(64, 1.0001)));
    await add(() => session.check(zeros(63)));
    await add(() => session.check(zeros(64, -1)));
    await add(() => session.infer(zeros(64)));
    const reports = await Promise.all([session.prepareKeys(), session.prepareKeys()]);
    codes.push(JSON.stringify(reports[0]) === JSON.stringify(reports[1]));
    await add(() => session.infer(zeros(63)));
    await add(() => session.infer(zeros(65)));
    await add(() => session.infer([]));
    for (const value of [1.0001, -2, 1e300, Infinity, NaN]) await add(() => session.infer(zeros(64, value)));
    // After all of this it still answers, at both ends of the range.
    await add(() => session.infer(zeros(64, 1)));
    await add(() => session.infer(zeros(64, -1)));
    await session.close();
    return codes;
  });
  assert.deepEqual(observed, [
    "bad_request", "bad_request", "other_model", "insecure", "[-1,1]", "number_range", "length", null, "keys_incomplete", true,
    "length", "length", "length",
    ...new Array(5).fill("number_range"),
    null, null,
  ]);
  assert.equal(sets.length, 1);
  await page.context().close();
});

test("a server refuses what looks like a secret key, wherever it is put", async () => {
  const page = await open(fixtures.browser);
  const observed = await codes(page, async () => {
    const { Server } = await import("/client/dist/server.js");
    const { readManifest } = await import("/client/dist/manifest.js");
    const { default: load, Client } = await import("/client/dist/wasm/keywright_client_wasm.js");
    await load();
    const server = new Server(location.origin);
    const manifest = await readManifest(await server.bytes("GET", "/v1/model", null, 1 << 20));
    const secret = new Client(manifest.client, crypto.getRandomValues(new Uint8Array(32))).secretBytes();
    const begin = async () => `/v1/keys/${(await server.json("POST", "/v1/keys", JSON.stringify({ model: manifest.hash }))).keys}`;
    const [first, second] = [await begin(), await begin()];
    // Complete keys, whose address a session that ends tells the browser: messages for others are refused unread.
    const { Session } = await import("/client/dist/index.js");
    const session = new Session();
    await session.connect("", null, { insecure: true });
    await session.prepareKeys();
    let complete = "";
    navigator.sendBeacon = (address) => (complete = new URL(address).pathname.replace("/delete", ""));
    session.abandon();
    return [
      await codeOf(() => server.upload(first, 0, secret, () => {})),
      // The server deleted it with all parts that had arrived.
      await codeOf(() => server.json("GET", first)),
      await codeOf(() => server.json("POST", `${second}/jobs`, new Uint8Array([...new Uint8Array(40), ...secret]))),
      await codeOf(() => server.json("POST", `${complete}/jobs`, new Uint8Array([...new Uint8Array(40), ...secret]))),
      await codeOf(() => server.json("DELETE", second)),
    ];
  });
  assert.deepEqual(observed, ["secret_refused", "unknown_keys", "keys_incomplete", "secret_refused", null]);
  await page.context().close();
});

test("a page that came over plain HTTP from elsewhere says what it needs", async () => {
  const [, address] = await fixtures.place.serve(fixtures.model, "--name", "phone.test");
  const far = await launch(["--host-resolver-rules=MAP phone.test 127.0.0.1"]);
  const page = await open(far);
  await page.goto(`http://phone.test:${new URL(address).port}`);
  await page.locator("#error").waitFor({ state: "visible" });
  assert.equal(await page.locator("#error").getAttribute("data-code"), "insecure_page");
  assert.match(await page.locator("#error").textContent(), /HTTPS/);
  await far.close();
});
