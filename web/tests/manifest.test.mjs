/** What a manifest must state about its inputs. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { root } from "./parameters.mjs";

const { pack, readManifest } = await import(new URL("target/web/client/dist/manifest.js", root).href);
const places = { shape: [2], batch: 1, ciphertexts: 1, size: 4, start: [0, 1], repeat: 1, stride: 1 };
const entry = {
  format: "keywright-manifest", version: 4, name: "two numbers", packing: "coefficients", client: "AA==", parameters: "AA==",
  key_set: "AA==", key_bytes: 5, input: places, output: places, input_level: 0, output_level: 0, scale: "1024",
  input_range: [-4.5, 7.0], divisor: 8.0, factor: 1.0, program: "", labels: [], log_n: 10, modulus: "65537", insecure: true,
};
const read = (change) => readManifest(new TextEncoder().encode(JSON.stringify({ ...entry, ...change })));

test("the range of inputs and their divisor are read", async () => {
  const { inputRange, divisor } = await read({});
  assert.deepEqual([inputRange, divisor], [[-4.5, 7], 8]);
  assert.deepEqual((await read({ input_range: [-0.25, 0.25], divisor: 0.25 })).inputRange, [-0.25, 0.25]);
});

test("every sample's places hold the sample, also in a second part", async () => {
  // Rows as of `test_layouts_and_places_of_two_parts` of the Python package.
  const joined = { shape: [2], batch: 4, ciphertexts: 2, size: 16, start: [0, 4], repeat: 2, stride: 8, parts: 2 };
  const both = { version: 9, input: joined, output: joined };
  const { input, output } = await read(both);
  assert.deepEqual([input, output], [joined, joined]);
  const row = [5, 5, 0, 0, 6, 6, 0, 0];
  assert.deepEqual([...pack(input, [5, 6])], [...row, ...row, ...row, ...row]);
  assert.deepEqual([...pack((await read({})).input, [5, 6])], [5, 6, 0, 0]);
  assert.equal((await read({ version: 9 })).input.parts, 1);
  for (const wrong of [
    { parts: 0 }, { parts: 3 }, { parts: 4 }, { parts: "2" }, { parts: null }, { parts: 1.5 }, { batch: 3 }, { batch: 64 },
    { ciphertexts: 1 }, { ciphertexts: 3 }, { start: [0, 7] }, { start: [0, -1] }, { parts: 1, start: [0, 21] },
  ]) {
    const refused = read({ ...both, input: { ...joined, ...wrong } });
    await assert.rejects(refused, ({ code, message }) => code === "manifest" && /input/.test(message), JSON.stringify(wrong));
  }
  await assert.rejects(read({ ...both, output: { ...joined, parts: 1 } }), ({ code }) => code === "manifest");
});

test("steps of Python clients are refused in every version", async () => {
  for (const name of ["normalised", "first_steps", "binning", "bits"]) {
    for (const version of [4, 9]) {
      await assert.rejects(read({ version, [name]: [] }), ({ code, message }) => code === "manifest" && message.includes(name));
    }
  }
});

test("more values than any manifest has are refused before they are parsed", async () => {
  await assert.rejects(read({ more: Array(1 << 20).fill([]) }), ({ code, message }) => code === "manifest" && /values/.test(message));
  assert.equal((await read({ more: Array(1 << 18).fill([]) })).name, "two numbers");
});

test("a range that is none, or whose quotients are above 1, is refused", async () => {
  for (const change of [
    { version: 3 }, { version: 5 }, { version: 8 }, { version: 10 }, { version: "9" }, { divisor: 3 }, { divisor: 0 }, { divisor: "8" }, { divisor: 4 }, { input_range: null }, { input_range: [1] },
    { input_range: [1, 1] }, { input_range: [2, 1] }, { input_range: [-4, 7, 8] }, { input_range: ["-4", 7] }, { input_range: [-9, 7] },
  ]) {
    await assert.rejects(read(change), ({ code }) => code === "manifest", JSON.stringify(change));
  }
});

test("clients of slots may have no range, and the magnitude of their messages follows from the range that they have", async () => {
  const slots = { packing: "slots", client: "", input_level: 5, output_level: 1 };
  const free = await read({ ...slots, input_range: null, input_ring: undefined });
  assert.deepEqual([free.inputRange, free.magnitude, free.inputLevel, free.outputLevel, free.inputRing], [[-Infinity, Infinity], 0, 5, 1, 0]);
  // As `declared_magnitude` of the Python package: the power of two from twice the larger end on, divided.
  for (const [range, magnitude] of [[[0, 1], 2], [[-3, 2], 8], [[-4, 4], 8], [[0, 0.3], 1]]) {
    assert.equal((await read({ ...slots, input_range: range, divisor: 1 })).magnitude, magnitude);
    assert.equal((await read({ ...slots, input_range: range, divisor: 4 })).magnitude, magnitude / 4);
  }
  for (const change of [{ input_level: -1 }, { input_level: 64 }, { input_range: [1, 0] }, { input_ring: 10 }]) {
    await assert.rejects(read({ ...slots, ...change }), ({ code }) => code === "manifest", JSON.stringify(change));
  }
});
