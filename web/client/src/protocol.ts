/** What passes between a page and its worker. */

/** A model, as far as a page needs to know it. */
export interface ModelInfo {
  readonly hash: string;
  readonly name: string;
  readonly labels: readonly string[];
  readonly inputShape: readonly number[];
  /** Lowest and highest number that the model takes. */
  readonly inputRange: readonly [number, number];
  readonly keyBytes: number;
  readonly logN: number;
  readonly modulusBits: number;
  readonly insecure: boolean;
  /** About the bytes of a question and of its answer. */
  readonly questionBytes: number;
  readonly answerBytes: number;
}

/** What making and sending the keys took. */
export interface KeyReport {
  readonly bytes: number;
  readonly keys: number;
  /** Milliseconds. */
  readonly making: number;
  readonly sending: number;
  /** Most memory of the module, bytes. */
  readonly peakMemory: number;
}

/** An answer, and what it took. */
export interface Answer {
  readonly scores: readonly number[];
  readonly sent: number;
  readonly received: number;
  /** Milliseconds of the tab, of the server's evaluation, and of everything between. */
  readonly encrypting: number;
  readonly evaluating: number;
  readonly decrypting: number;
  readonly waiting: number;
}

/** What the server says that it has of this client. */
export interface Seen {
  readonly secretKeys: number;
  readonly objects: readonly { direction: string; what: string; size: number; sample: string }[];
}

/** Bytes of the bodies of requests and answers, counted in the worker where they leave and come. */
export interface Traffic {
  readonly sent: number;
  readonly received: number;
  readonly requests: number;
}

export interface Calls {
  connect(base: string, pinned: string | null): ModelInfo;
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
  | { id: number; kind: "progress"; done: number; total: number }
  /** Where the server keeps this client's keys, as soon as it does; null when it does no more. */
  | { id: number; kind: "keys"; address: string | null }
  /** A request did not come through and is made again after a pause. */
  | { id: number; kind: "pause" }
  | { id: number; kind: "error"; code: string; message: string; details: Record<string, unknown> };
