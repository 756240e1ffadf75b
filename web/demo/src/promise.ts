/** What the page promises before it begins: from a measurement in this tab and the server's own statement. */

import { about } from "./text.js";

/** Bits per second of a slow and a fast connection, where the server is elsewhere. */
const LINKS: readonly [number, string][] = [[10e6, "10 Mbit/s"], [100e6, "100 Mbit/s"]];
/** Where tab and server share a machine, it also carries, receives and checks every byte that the tab makes. */
const SHARED = 3;
/** Encrypting, decrypting and some twenty requests, in seconds. */
const REST = 1;
/** A first evaluation also reads the keys. */
const FIRST = 2;

const HERE = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);

/** Seconds of making and sending keys, at the tab's measured bytes per second. */
export interface Promised {
  /** On this machine; null for a server elsewhere, whose connection nobody has measured yet. */
  readonly seconds: number | null;
  readonly words: string;
}

/**
 * The time until the first answer.
 *
 * @param size bytes of the keys.
 * @param pace bytes per second that the tab makes.
 * @param evaluation seconds that the server states; null if it says none.
 */
export function promised(size: number, pace: number, evaluation: number | null): Promised {
  if (pace === 0) return { seconds: null, words: "no time can be predicted" };
  const [made, computed] = [size / pace, FIRST * (evaluation ?? 0)];
  if (HERE) {
    const seconds = Math.ceil(SHARED * made + computed + REST);
    return { seconds, words: about(seconds) };
  }
  const each = LINKS.map(([speed, name]) => `${about(Math.max((8 * size) / speed, made) + computed + REST)} at ${name}`);
  return { seconds: null, words: each.join(", ") };
}
