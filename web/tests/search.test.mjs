/** The module asks an index of vectors by what the index's directory states (docs/how-to/search.md). */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { entropy, load, root } from "./parameters.mjs";

const { Client } = await load();
const COUNT = 300;
const DIMENSION = 6;
const PYTHON = fileURLToPath(new URL(".venv/bin/python", root));
const IMPORTS = `
import sys
from pathlib import Path
import numpy as np
from keywright import search
folder, received = Path(sys.argv[1]), sys.stdin.buffer.read()
`;
const MAKE = `${IMPORTS}
index = search.Index.of(np.frombuffer(received).reshape(-1, ${DIMENSION}), thin=True)
index.save(folder / "index")
sys.stdout.buffer.write(index.directory())
`;
const ANSWER = `${IMPORTS}
index = search.Index.load(folder / "index")
sys.stdout.buffer.write(index.answer(received, (folder / "keys").read_bytes()))
`;

/** A vector of the norm `levels`, rounded. */
function rounded(vector, levels) {
  const norm = Math.hypot(...vector);
  return vector.map((value) => Math.round((levels * value) / norm));
}

test("scores of an index are those of rounded vectors", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "keywright-search."));
  context.after(() => rm(folder, { recursive: true }));
  const serve = (program, input) => execFileSync(PYTHON, ["-c", program, folder], { input });
  const vectors = Array.from({ length: COUNT }, (_, i) =>
    Array.from({ length: DIMENSION }, (_, j) => ((7919 * i + 104729 * j) % 2003) - 1001.5),
  );
  const directory = serve(MAKE, Buffer.from(Float64Array.from(vectors.flat()).buffer));
  assert.equal(directory.toString("latin1", 0, 8), "KWSDIRS3");
  const { levels, ...stated } = JSON.parse(directory.toString("utf8", 20, 20 + directory.readUInt32LE(8)));
  const [parameters, every, head] = ["client", "parameters", "key_set"].map((name) => Buffer.from(stated[name], "base64"));

  const client = new Client(parameters, entropy(1));
  const stream = client.keyStream(every, head);
  const keys = [];
  for (let part = stream.next(); part !== undefined; part = stream.next()) keys.push(part);
  await writeFile(join(folder, "keys"), Buffer.concat(keys));
  const query = rounded(vectors[7], levels);
  const tag = Buffer.alloc(16, 7);
  const answer = serve(ANSWER, Buffer.concat([Buffer.from("KWSQURY1"), tag, client.encryptCompact(Int32Array.from(query), 0)]));
  assert.equal(answer.toString("latin1", 0, 8), "KWSANSW2");
  assert.ok(answer.subarray(8, 24).equals(tag));
  assert.equal(answer.toString("hex", 24, 56), stated.index + stated.revision);
  const scores = Array.from(client.decrypt(answer.subarray(64)).subarray(0, COUNT));
  const product = (vector) => rounded(vector, levels).reduce((sum, value, j) => sum + value * query[j], 0);
  assert.deepEqual(scores, vectors.map(product));
});
