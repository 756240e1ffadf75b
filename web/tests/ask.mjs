/**
 * The browser's client in Node, without a browser: `node ask.mjs URL JSON [COUNT]` connects with the demands in JSON,
 * makes the keys and prints {"code", "message"}; the code is null where the server has them. COUNT times, a line each.
 *
 * The worker's surroundings are those of a browser as far as it uses them: messages, and files by fetch.
 */

import { readFile } from "node:fs/promises";
import { root } from "./parameters.mjs";

const [url, demands, count = "1"] = process.argv.slice(2);
const pending = new Map();
const listeners = [];
globalThis.addEventListener = (_, listener) => listeners.push(listener);
globalThis.postMessage = (reply) => {
  if (reply.kind === "result" || reply.kind === "error") pending.get(reply.id)?.(reply);
};
const { fetch } = globalThis;
globalThis.fetch = async (address, ...rest) =>
  String(address).startsWith("file:")
    ? new Response(await readFile(new URL(address)), { headers: { "Content-Type": "application/wasm" } })
    : fetch(address, ...rest);

await import(new URL("target/web/client/dist/worker.js", root).href);

let next = 0;
function call(method, ...parameters) {
  const id = next++;
  return new Promise((resolve) => {
    pending.set(id, resolve);
    for (const listener of listeners) listener({ data: { id, method, parameters } });
  });
}

for (let i = 0; i < Number(count); i++) {
  let reply = await call("connect", url, null, JSON.parse(demands));
  if (reply.kind === "result") reply = await call("prepareKeys");
  console.log(JSON.stringify({ code: reply.code ?? null, message: reply.message ?? "" }));
}
process.exit(0);
