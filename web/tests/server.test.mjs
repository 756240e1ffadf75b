/** Servers that take an upload in no honest way. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { root } from "./parameters.mjs";

const { Server, PIECE } = await import(new URL("target/web/client/dist/server.js", root).href);
const LENGTH = 4 * PIECE;

/** Uploads to a server that says after each request, by its number and offset, how many bytes it has. */
async function upload(received) {
  const server = new Server("http://server");
  let requests = 0;
  globalThis.fetch = async (_, { method, headers, body }) => {
    const offset = Number(headers["Upload-Offset"] ?? 0);
    if (method === "PATCH") requests += 1;
    const text = JSON.stringify({ received: received(requests, offset, body?.length ?? 0) });
    return new Response(text, { headers: { "Content-Length": String(text.length) } });
  };
  await server.upload("/v1/keys/x", 0, new Uint8Array(LENGTH), () => {});
  return server.traffic.sent;
}

test("an upload sends each byte once to an honest server", async () => {
  assert.equal(await upload((_, offset, length) => offset + length), LENGTH);
});

for (const [what, received] of [
  ["takes nothing", () => 0],
  ["goes back and forth", (requests) => (requests % 2 ? PIECE : 0)],
  ["takes a byte of each piece", (_, offset) => offset + 1],
]) {
  test(`an upload to a server that ${what} ends`, async () => {
    await assert.rejects(upload(received), ({ code, message }) => code === "invalid_reply" && /takes no more/.test(message));
  });
}
