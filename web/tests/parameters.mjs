/** Parameters of thin clients, written from docs/reference/format.md (kind 0106), and the built module. */

import { readFile } from "node:fs/promises";
import { crc32 } from "node:zlib";

export const root = new URL("../../", import.meta.url);
export const built = new URL("target/web/client/dist/wasm/", root);

export const SHIFT_ADD_30 = 2n ** 30n - 2n ** 18n + 1n;
export const SHIFT_ADD_60 = 2n ** 60n - 2n ** 18n + 1n;

/** 32 bytes that count up. */
export const entropy = (first) => Uint8Array.from({ length: 32 }, (_, i) => first + i);

/** The module, in Node. */
export async function load() {
  const module = await import(new URL("keywright_client_wasm.js", built).href);
  const { memory } = module.initSync({ module: await readFile(new URL("keywright_client_wasm_bg.wasm", built)) });
  return { ...module, memory };
}

/**
 * A ring of uniform ternary secrets; numbers of at most 1.
 *
 * @param layout 0 coefficients, 1 real slots, 2 complex slots.
 * @param identity bytes 12 to 31 of the headers of the server's objects, without the first four.
 * @param insecure whether `modulus` may exceed the 128-bit bound.
 */
export function clientParameters({ logN, modulus, scale, fractionBits, layout, logSlots, insecure = false }) {
  const identity = Buffer.alloc(20, 0xa5);
  identity.set([logN, 1, 0, insecure ? 1 : 0]);
  const words = [BigInt(modulus), BigInt(scale), 1n << BigInt(fractionBits)].map((word) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(word);
    return bytes;
  });
  const reals = [1, 2, 3].map((value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return bytes;
  });
  const descriptor = Buffer.concat([Buffer.from([logN, layout, logSlots, fractionBits, 0, 0, 0, 0]), ...words, ...reals, identity]);
  const fixed = Buffer.alloc(44);
  fixed.write("\x89KWRT\r\n\x1a", "latin1");
  fixed.writeUInt16LE(2, 8);
  fixed.writeUInt16LE(0x0106, 10);
  identity.copy(fixed, 12);
  fixed.writeUInt32LE(descriptor.length, 32);
  const head = Buffer.concat([fixed, descriptor]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(head));
  // Of the header alone, and of the header with an empty body.
  return Buffer.concat([head, checksum, checksum]);
}
