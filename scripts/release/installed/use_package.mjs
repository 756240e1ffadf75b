/** The installed package makes the secret that the native build makes. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import * as session from "keywright-client";
import * as wasm from "keywright-client/wasm";

const lines = readFileSync("browser.txt", "utf8").trim().split("\n");
const vectors = Object.fromEntries(lines.map((line) => line.split(" ")));
const bytes = readFileSync(new URL("keywright_client_wasm_bg.wasm", import.meta.resolve("keywright-client/wasm")));
wasm.initSync({ module: bytes });
const client = new wasm.Client(Buffer.from(vectors.client, "hex"), Uint8Array.from({ length: 32 }, (_, i) => 1 + i));
const digest = createHash("sha256").update(client.secretBytes()).digest("hex");
assert.equal(digest, vectors.secret);
assert.equal(typeof session.Session, "function");
console.log(`the secret is that of vectors/browser.txt: ${digest.slice(0, 16)}`);
