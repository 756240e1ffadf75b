/**
 * `make web-bench`: milliseconds of encryption in WebAssembly, in Node and in Chromium, compared with node-seal's.
 * `--out FOLDER` writes them there.
 *
 * Every operation is checked (see work.mjs). A row is the median of the runs, with the quartiles and the fastest run.
 */

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import SEAL from "node-seal";
import { chromium } from "playwright-core";
import { clientParameters, load, root, SHIFT_ADD_30, SHIFT_ADD_60 } from "../tests/parameters.mjs";
import { ours, theirs } from "./work.mjs";

const { values: options } = parseArgs({ options: { out: { type: "string" }, runs: { type: "string", default: "41" } } });
const runs = Number(options.runs);
if (!(Number.isInteger(runs) && runs > 0)) throw new Error(`--runs ${options.runs}: a whole number above 0 is needed`);

// As many values as SEAL has slots at 2^13, all coefficients above. The generic prime is one of the bootstrapping
// presets.
const generic = 2n ** 50n - 0x47ffffn;
const sets = [];
for (const logN of [13, 16]) {
  const layout = logN === 13 ? 1 : 2;
  for (const [modulus, logScale, fractionBits] of [[SHIFT_ADD_30, 20, 16], [generic, 44, 24], [SHIFT_ADD_60, 54, 24]]) {
    const literal = { logN, modulus, scale: 2n ** BigInt(logScale), fractionBits, layout, logSlots: logN - 1 };
    const bits = modulus.toString(2).length;
    sets.push({ logN, bits, scale: 2 ** logScale, fractionBits, parameters: [...clientParameters(literal)] });
  }
}
const bytesOf = (set) => ({ ...set, parameters: Uint8Array.from(set.parameters) });

const module = await load();
const rows = [];
const add = (where, found) => rows.push(...found.map((row) => ({ where, ...row })));
for (const set of sets) add("Node", ours(module, bytesOf(set), runs));
add("Node", theirs(await SEAL(), 13, runs));

const folders = ["target/web/client/dist/wasm", "web/bench"].map((path) => join(fileURLToPath(root), path));
const types = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const server = createServer(async (request, response) => {
  // In an isolated page, clocks have a resolution of microseconds.
  response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
  const type = types[extname(request.url)];
  response.setHeader("Content-Type", type ?? "text/html");
  const folder = request.url.startsWith("/bench/") ? folders[1] : folders[0];
  response.end(type ? await readFile(join(folder, request.url.replace(/^\/bench/, ""))).catch(() => "") : "");
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.on("listening", resolve));
const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);
for (const set of sets) {
  add("Chromium", await page.evaluate(async ([set, runs]) => {
    const module = await import("/keywright_client_wasm.js");
    await module.default({ module_or_path: "/keywright_client_wasm_bg.wasm" });
    const { ours } = await import("/bench/work.mjs");
    return ours(module, { ...set, parameters: Uint8Array.from(set.parameters) }, runs);
  }, [set, runs]));
}
add("Chromium", await page.evaluate(async (runs) => {
  const { default: SEAL } = await import("/bench/node_modules/node-seal/throws_wasm_web_es.js");
  const { theirs } = await import("/bench/work.mjs");
  return theirs(await SEAL(), 13, runs);
}, runs));
const version = browser.version();
await browser.close();
server.close();

const ms = (time) => time.toFixed(2);
const at = (times, share) => times[Math.round(share * (times.length - 1))];
const table = [
  `${cpus()[0].model}; Node ${process.version}, Chromium ${version}; medians of ${runs} runs, milliseconds.`,
  "",
  "| where | library | work | N | modulus, bits | values | bytes | median | quartiles | least |",
  "|---|---|---|---|---|---|---|---|---|---|",
  ...rows.map(({ where, library, work, log_n, bits, values, bytes, times }) => {
    const spread = `${ms(at(times, 0.25))} to ${ms(at(times, 0.75))}`;
    return `| ${where} | ${library} | ${work} | 2^${log_n} | ${bits} | ${values} | ${bytes} | ${ms(at(times, 0.5))} | ${spread} | ${ms(times[0])} |`;
  }),
  "",
].join("\n");
console.log(table);
if (options.out !== undefined) {
  await mkdir(options.out, { recursive: true });
  await writeFile(join(options.out, "times.md"), table);
}
