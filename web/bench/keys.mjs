/**
 * `node web/bench/keys.mjs PRESET`: makes all keys of a bootstrapping preset in WebAssembly, as a tab does, and prints
 * the memory that it took. Needs the built module and the Python package, which checks the whole set. `--check FOLDER`
 * stores the set there meanwhile, and needs that much space.
 */

import { execFileSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { load, root } from "../tests/parameters.mjs";

const { values: options, positionals } = parseArgs({ options: { check: { type: "string" } }, allowPositionals: true });
const python = (script, ...args) =>
  execFileSync(join(fileURLToPath(root), ".venv/bin/python"), ["-c", script, ...args], { encoding: "utf8", maxBuffer: 1 << 26 });
const [client, parameters, head] = JSON.parse(
  python(
    `import json, sys, keywright as kw
plan = kw.BootstrapperPlan.preset(sys.argv[1])
head = kw.key_set_head(plan.required_keys)
print(json.dumps([data.hex() for data in (plan.client_parameters(24).to_bytes(), plan.parameters.to_bytes(), head)]))`,
    positionals[0] ?? "N16_QP1732_L9_S45_real",
  ),
).map((text) => Buffer.from(text, "hex"));

const { Client, memory } = await load();
const random = crypto.getRandomValues(new Uint8Array(32));
const stream = new Client(client, random).keyStream(parameters, head);
const path = options.check && join(options.check, "keys.kw");
const file = path && openSync(path, "w");
const start = performance.now();
let [bytes, longest] = [0, 0];
for (let part = stream.next(); part !== undefined; part = stream.next()) {
  bytes += part.length;
  longest = Math.max(longest, part.length);
  if (file) writeSync(file, part);
}
if (bytes !== stream.bytes) throw new Error(`${bytes} bytes were made, ${stream.bytes} announced`);
const seconds = (performance.now() - start) / 1000;
if (file) {
  closeSync(file);
  python(
    `import sys, keywright as kw
parameters = kw.BootstrapperPlan.preset(sys.argv[1]).parameters
kw.EvaluationKeys.load(sys.argv[2], parameters)`,
    positionals[0] ?? "N16_QP1732_L9_S45_real",
    path,
  );
  rmSync(path);
}
console.log(JSON.stringify({ keys: stream.keys, bytes, seconds, longest_part: longest, memory: memory.buffer.byteLength, checked: Boolean(file) }));
