/** The module gives the bytes that the native build gives: vectors/browser.txt. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const built = new URL("target/web/client/dist/wasm/", root);
const { initSync, Client } = await import(new URL("keywright_client_wasm.js", built).href);
initSync({ module: await readFile(new URL("keywright_client_wasm_bg.wasm", built)) });

const vectors = Object.fromEntries(
  (await readFile(new URL("vectors/browser.txt", root), "utf8")).trim().split("\n").map((line) => line.split(" ")),
);
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
const entropy = (first) => Uint8Array.from({ length: 32 }, (_, i) => first + i);
const parameters = Buffer.from(vectors.parameters, "hex");
const make = () => new Client(parameters, BigInt(vectors.scale), entropy(1));

test("secret, keys and ciphertexts are those of the native build", () => {
  const client = make();
  assert.equal(digest(client.secretBytes()), vectors.secret);
  const stream = client.keyStream(Buffer.from(vectors.head, "hex"), entropy(101));
  const hash = createHash("sha256");
  let length = 0;
  for (let piece = stream.next(); piece !== undefined; piece = stream.next()) {
    hash.update(piece);
    length += piece.length;
  }
  assert.equal(length, stream.bytes);
  assert.equal(hash.digest("hex"), vectors.keys);
  const numbers = Int32Array.from({ length: 1024 }, (_, i) => (((i * 7919) % 20001) - 10000) << 10);
  assert.equal(digest(client.encrypt(numbers)), vectors.ciphertext);
});

test("errors have codes", () => {
  const code = (call) => {
    try {
      call();
    } catch (error) {
      assert.ok(error instanceof Error && error.message.length > 10);
      return error.code;
    }
    return null;
  };
  assert.equal(code(() => new Client(parameters, 1n << 40n, new Uint8Array(31))), "randomness");
  assert.equal(code(() => new Client(parameters, 1n << 40n, new Uint8Array(32))), "randomness");
  assert.equal(code(() => new Client(parameters.subarray(1), 1n << 40n, entropy(1))), "format");
  const client = make();
  assert.equal(code(() => client.encrypt(new Int32Array([1 << 25]))), "number_range");
  assert.equal(code(() => client.encrypt(new Int32Array(1025))), "length");
  assert.equal(code(() => client.decrypt(new Uint8Array(10))), "format");
  assert.equal(code(() => client.keyStream(new Uint8Array(10), entropy(1))), "format");
});
