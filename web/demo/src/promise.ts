/** What the page promises before it begins: from a measurement in this tab and the server's own statement. */

import { about } from "./text.js";

/** Bits per second of a slow and a fast connection, where the server is elsewhere. */
const LINKS: readonly [number, string][] = [[10e6, "10 Mbit/s"], [100e6, "100 Mbit/s"]];
/**
 * Where tab and server share a machine, it also carries, receives and checks every byte that the tab makes. With eight
 * busy programs a core this took seven to ten times as long as making the keys alone.
 */
const SHARED = 7;
/** Requests until the first answer: pieces of keys, their state, the question and its progress. */
const REQUESTS = 40;
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
 * @param trip seconds of a small request: on a busy machine, or far away, requests take longer than bytes.
 */
export function promised(size: number, pace: number, evaluation: number | null, trip: number): Promised {
  if (pace === 0) return { seconds: null, words: "no time can be predicted" };
  const [made, rest] = [size / pace, FIRST * (evaluation ?? 0) + REQUESTS * trip];
  if (HERE) {
    const seconds = Math.ceil(SHARED * made + rest);
    return { seconds, words: about(seconds) };
  }
  const each = LINKS.map(([speed, name]) => `${about(Math.max((8 * size) / speed, made) + rest)} at ${name}`);
  return { seconds: null, words: each.join(", ") };
}
