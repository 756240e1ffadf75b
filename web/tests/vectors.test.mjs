/**
 * The module produces the bytes of the native build (vectors/browser.txt) and those of an independent program
 * (vectors/client.txt).
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import { clientParameters, entropy, load, root } from "./parameters.mjs";

const { Client, Encryptor } = await load();
const lines = async (name) => (await readFile(new URL(`vectors/${name}`, root), "utf8")).trim().split("\n");
const vectors = Object.fromEntries((await lines("browser.txt")).map((line) => line.split(" ")));
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
const hex = (name) => Buffer.from(vectors[name], "hex");
const make = () => new Client(hex("client"), entropy(1));

/** The remaining bytes of a stream. */
function rest(stream) {
  const parts = [];
  for (let part = stream.next(); part !== undefined; part = stream.next()) parts.push(part);
  return Buffer.concat(parts);
}

test("secret, keys and ciphertexts are those of the native build", () => {
  const client = make();
  assert.equal(digest(client.secretBytes()), vectors.secret);
  const stream = client.keyStream(hex("parameters"), hex("head"));
  const whole = rest(stream);
  assert.equal(whole.length, stream.bytes);
  assert.equal(digest(whole), vectors.keys);
  for (const place of [0, 1, hex("head").length, 20_000, whole.length >> 1, whole.length - 3, whole.length]) {
    stream.seek(place);
    assert.ok(rest(stream).equals(whole.subarray(place)), `from byte ${place} on`);
  }
  const numbers = Int32Array.from({ length: 1024 }, (_, i) => (((i * 7919) % 20001) - 10000) << 10);
  assert.equal(digest(client.encrypt(numbers)), vectors.ciphertext);
});

test("every form has the bytes that were computed by definition", async () => {
  for (const line of await lines("client.txt")) {
    const [logN, modulus, scale, fractionBits, layout, logSlots, ...objects] = line.split(" ").map(BigInt);
    // Numbers of the module have 32 bits.
    if (fractionBits > 30n) continue;
    const small = { logN, fractionBits, layout, logSlots };
    for (const name of Object.keys(small)) small[name] = Number(small[name]);
    const parameters = clientParameters({ ...small, modulus, scale, insecure: true });
    const client = new Client(parameters, entropy(1));
    const max = client.max;
    const numbers = Int32Array.from({ length: client.capacity }, (_, i) => ((7919 * i) % (2 * max + 1)) - max);
    const publicKey = client.publicKey();
    const seeded = [client.encrypt(numbers), client.encryptCompact(numbers, 2)];
    const encryptor = new Encryptor(parameters, publicKey, entropy(2));
    const results = [client.secretBytes(), publicKey, ...seeded, encryptor.encrypt(numbers), encryptor.encryptCompact(numbers, 4, 1)];
    assert.deepEqual(results.flatMap((bytes) => [BigInt(bytes.length), BigInt(crc32(bytes))]), objects, line);
  }
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
  const parameters = hex("client");
  assert.equal(code(() => new Client(parameters, new Uint8Array(31))), "randomness");
  assert.equal(code(() => new Client(parameters, new Uint8Array(32))), "randomness");
  assert.equal(code(() => new Client(parameters.subarray(1), entropy(1))), "format");
  const client = make();
  assert.equal(code(() => client.encrypt(new Int32Array([1 << 25]))), "number_range");
  assert.equal(code(() => client.encrypt(new Int32Array(1025))), "length");
  assert.equal(code(() => client.decrypt(new Uint8Array(10))), "format");
  assert.equal(code(() => client.decrypt(client.secretBytes())), "format");
  assert.equal(code(() => client.keyStream(hex("parameters"), new Uint8Array(10))), "format");
  const stream = client.keyStream(hex("parameters"), hex("head"));
  assert.equal(code(() => stream.seek(stream.bytes + 1)), "format");
  assert.equal(code(() => new Encryptor(parameters, parameters, entropy(1))), "format");
});
