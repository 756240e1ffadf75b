/** `node web/tests/bench.mjs`: milliseconds of the module in Chromium, median of 20 runs. What it encrypted is decrypted by the full library. */

import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../", import.meta.url));
const presets = ["N13_QP214_S38", "N15_QP830_S45", "N16_QP1660_S50"];
const ask = `
import json, sys, keywright as kw
print(json.dumps([[p.log_n, p.q[0].bit_length(), p.to_bytes().hex(), 2 ** (p.q[0].bit_length() - 12)]
                  for p in map(kw.Parameters.preset, sys.argv[1:])]))`;
const check = `
import json, sys, keywright as kw, numpy as np
data = [bytes.fromhex(text) for text in json.load(sys.stdin)]
p = kw.Parameters.from_bytes(data[0])
found = kw.Decryptor(kw.SecretKey.from_bytes(data[1], p)).decrypt(kw.SeededCiphertext.from_bytes(data[2], p).expand())
wanted = (np.arange(p.n) * 7919 % 2001 - 1000) / 2**24
assert np.abs(found - wanted).max() < 0.5 / 2**24, "the ciphertext decrypts to something else"`;

function run(script, input, ...args) {
  return execFileSync(join(root, ".venv/bin/python"), ["-c", script, ...args], { encoding: "utf8", input });
}
const sets = JSON.parse(run(ask, "", ...presets));

const types = { ".js": "text/javascript", ".wasm": "application/wasm" };
const server = createServer(async (request, response) => {
  const type = types[extname(request.url)];
  response.setHeader("Content-Type", type ?? "text/html");
  response.end(type ? await readFile(join(root, "target/web/client/dist/wasm", request.url)) : "");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.on("listening", resolve));
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);
for (const [logN, bits, parameters, scale] of sets) {
  const found = await page.evaluate(
    async ([parameters, scale]) => {
      const { default: init, Client } = await import("/keywright_client_wasm.js");
      await init({ module_or_path: "/keywright_client_wasm_bg.wasm" });
      const bytes = Uint8Array.from(parameters.match(/../g), (pair) => parseInt(pair, 16));
      const client = new Client(bytes, BigInt(scale), crypto.getRandomValues(new Uint8Array(32)));
      const numbers = Int32Array.from({ length: client.size }, (_, i) => ((i * 7919) % 2001) - 1000);
      const times = [];
      let sent;
      for (let run = 0; run < 20; run++) {
        const start = performance.now();
        sent = client.encrypt(numbers);
        times.push(performance.now() - start);
      }
      const hex = (data) => Array.from(data, (byte) => byte.toString(16).padStart(2, "0")).join("");
      const secret = hex(client.secretBytes());
      return { encrypt: times.sort((a, b) => a - b)[10], bytes: sent.length, secret, ciphertext: hex(sent) };
    },
    [parameters, String(scale)],
  );
  run(check, JSON.stringify([parameters, found.secret, found.ciphertext]));
  console.log(JSON.stringify({ log_n: logN, q0_bits: bits, encrypt_ms: found.encrypt, bytes: found.bytes }));
}
await browser.close();
server.close();
