/** Keywright's thin client in a browser: keys, encryption and decryption in a worker, the model on a server. */

import { ClientError, type Code } from "./errors.js";
import type { Answer, Calls, Demands, KeyReport, Method, ModelInfo, Reply, Seen, Stage, Traffic } from "./protocol.js";

export { ClientError, type Code } from "./errors.js";
export type { Answer, Demands, KeyReport, ModelInfo, Seen, Stage, Traffic } from "./protocol.js";

type Progress = (done: number, total: number, stage?: Stage) => void;
type Pending = { resolve: (value: unknown) => void; reject: (error: ClientError) => void; progress: Progress };

/** A client of one model. Its secret is made in a worker and never leaves it. */
export class Session {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  /** The URL of the keys on the server. */
  #keys: string | null = null;
  #next = 0;
  /** Called when the server is unreachable or busy, before a pause and a retry. */
  onPause: () => void = () => {};

  /** @param worker of `worker.js` of this package. */
  constructor(worker: Worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" })) {
    this.#worker = worker;
    worker.addEventListener("message", (event: MessageEvent<Reply>) => this.#receive(event.data));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      for (const pending of this.#pending.values()) {
        pending.reject(new ClientError("internal", "The worker could not be started. Reload the page."));
      }
      this.#pending.clear();
    });
  }

  /**
   * Fetches the manifest of the server's model.
   *
   * @param base address of the server; by default that of the page.
   * @param pinned expected hash of the manifest; null accepts any.
   * @param demands what is accepted of the server. Parameters below 128 bits are refused with the code "insecure", more
   * keys than the limits with the code "demand", both before a secret exists.
   */
  connect(base = "", pinned: string | null = null, demands: Demands = {}): Promise<ModelInfo> {
    const address = new URL(base, location.href);
    // Of the page's own address, its query belongs to the page.
    address.search = address.hash = "";
    return this.#call("connect", [address.href.replace(/\/$/, ""), pinned, demands]);
  }

  /** Refuses a sample outside of the model's range, with the code "length" or "number_range", before keys exist. */
  async check(values: readonly number[]): Promise<void> {
    await this.#call("check", [values]);
  }

  /** Measures how many bytes of keys this tab makes in a second, with keys that it forgets. */
  pace(): Promise<number> {
    return this.#call("pace", []);
  }

  /** Seconds of an evaluation that the server states: measured, or predicted before its first; null without any. */
  evaluationSeconds(): Promise<number | null> {
    return this.#call("evaluationSeconds", []);
  }

  /**
   * Makes the secret and the keys that the server requests, and sends the keys with a few limbs in memory at a time.
   * Broken connections are retried for some seconds. After an error "unreachable" or "busy", the next call resumes at
   * the byte that the server expects. After "unknown_keys" from another method, it makes new keys.
   */
  prepareKeys(progress: Progress = () => {}): Promise<KeyReport> {
    return this.#call("prepareKeys", [], progress);
  }

  /** Encrypts a sample, has the server evaluate it, and decrypts the answer. */
  infer(values: readonly number[], progress: Progress = () => {}): Promise<Answer> {
    return this.#call("infer", [values], progress);
  }

  /** The server's account of what it has from this client. */
  seen(): Promise<Seen> {
    return this.#call("seen", []);
  }

  /** Bytes of all requests and answers of this session, counted where they leave and enter the tab. */
  traffic(): Promise<Traffic> {
    return this.#call("traffic", []);
  }

  /** Ends the current work with an error "cancelled". The next `prepareKeys` resumes the upload of keys. */
  async cancel(): Promise<void> {
    await this.#call("cancel", []);
  }

  /** Deletes the keys on the server, and the secret. */
  async close(): Promise<void> {
    try {
      await this.#call("close", []);
    } finally {
      this.#worker.terminate();
    }
  }

  /**
   * Asks the server to delete the keys, without waiting for an answer, and ends: for a page that is closing. If the
   * request is lost, the server deletes the keys after some time without use.
   */
  abandon(): void {
    if (this.#keys !== null) navigator.sendBeacon(`${this.#keys}/delete`);
    this.#keys = null;
    this.#worker.terminate();
  }

  #call<M extends Method>(
    method: M,
    parameters: unknown[],
    progress: Progress = () => {},
  ): Promise<ReturnType<Calls[M]>> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject, progress });
      this.#worker.postMessage({ id, method, parameters });
    });
  }

  #receive(reply: Reply): void {
    if (reply.kind === "keys") {
      this.#keys = reply.address;
      return;
    }
    if (reply.kind === "pause") {
      this.onPause();
      return;
    }
    const pending = this.#pending.get(reply.id);
    if (pending === undefined) return;
    if (reply.kind === "progress") {
      pending.progress(reply.done, reply.total, reply.stage);
      return;
    }
    this.#pending.delete(reply.id);
    if (reply.kind === "result") pending.resolve(reply.value);
    else pending.reject(new ClientError(reply.code as Code, reply.message, reply.details));
  }
}
