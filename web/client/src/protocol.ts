/** Messages between a page and its worker. */

/** The properties of a model that a page needs. */
export interface ModelInfo {
  readonly hash: string;
  readonly name: string;
  readonly labels: readonly string[];
  readonly inputShape: readonly number[];
  /** Lowest and highest number that the model accepts; infinite if it has no range. */
  readonly inputRange: readonly [number, number];
  readonly keyBytes: number;
  readonly logN: number;
  readonly modulusBits: number;
  readonly insecure: boolean;
  /** Whether numbers are in coefficients, which servers bootstrap, or in slots. */
  readonly packing: "coefficients" | "slots";
  /** Approximate bytes of a question and of its answer. */
  readonly questionBytes: number;
  readonly answerBytes: number;
}

/** The cost of making and sending the keys. */
export interface KeyReport {
  readonly bytes: number;
  readonly keys: number;
  /** Milliseconds. */
  readonly making: number;
  readonly sending: number;
  /** Peak memory of the module, in bytes. */
  readonly peakMemory: number;
}

/** An answer, and its cost. */
export interface Answer {
  readonly scores: readonly number[];
  readonly sent: number;
  readonly received: number;
  /** The first bytes of the encrypted question, as the server sees them. */
  readonly sample: Uint8Array;
  /** Milliseconds in the tab, in the server's evaluation, and in everything between. */
  readonly encrypting: number;
  readonly evaluating: number;
  readonly decrypting: number;
  readonly waiting: number;
}

/** The server's account of what it has from this client. */
export interface Seen {
  readonly secretKeys: number;
  readonly objects: readonly { direction: string; what: string; size: number; sample: string }[];
}

/** Bytes of the bodies of requests and answers, counted in the worker where they leave and enter. */
export interface Traffic {
  readonly sent: number;
  readonly received: number;
  readonly requests: number;
}

/** What a client accepts of a server, which chooses the parameters and the keys. */
export interface Demands {
  /** Whether parameters below 128 bits of security are accepted, for made-up data; false by default. */
  readonly insecure?: boolean;
  /** Most bytes of keys; 4 GiB by default. */
  readonly keyBytes?: number;
  /** Most keys; 4096 by default. */
  readonly keyCount?: number;
}

/** Where an evaluation is: in the server's queue, or with a worker that loads keys and then computes. */
export type Stage = "waiting" | "running";

export interface Calls {
  connect(base: string, pinned: string | null, demands: Demands): ModelInfo;
  pace(): number;
  evaluationSeconds(): number | null;
  check(values: readonly number[]): null;
  prepareKeys(): KeyReport;
  infer(values: readonly number[]): Answer;
  seen(): Seen;
  traffic(): Traffic;
  cancel(): null;
  close(): null;
}

export type Method = keyof Calls;
export type Request = { id: number; method: Method; parameters: unknown[] };
export type Reply =
  | { id: number; kind: "result"; value: unknown }
  | { id: number; kind: "progress"; done: number; total: number; stage?: Stage }
  /** The URL of this client's keys on the server; null once they are deleted. */
  | { id: number; kind: "keys"; address: string | null }
  /** A request failed, and is made again after a pause. */
  | { id: number; kind: "pause" }
  | { id: number; kind: "error"; code: string; message: string; details: Record<string, unknown> };
