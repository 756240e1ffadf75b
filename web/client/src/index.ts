/** The thin client of Keywright in a browser: keys, encryption and decryption in a worker, the model on a server. */

import { ClientError, type Code } from "./errors.js";
import type { Answer, Calls, KeyReport, Method, ModelInfo, Reply, Seen, Traffic } from "./protocol.js";

export { ClientError, type Code } from "./errors.js";
export type { Answer, KeyReport, ModelInfo, Seen, Traffic } from "./protocol.js";

type Progress = (done: number, total: number) => void;
type Pending = { resolve: (value: unknown) => void; reject: (error: ClientError) => void; progress: Progress };

/** A client of one model. Its secret is made in a worker and never leaves it. */
export class Session {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  /** Where the server keeps the keys. */
  #keys: string | null = null;
  #next = 0;
  /** Called when the server was not reached, or is busy, and is asked again after a pause. */
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
   * Fetches the manifest of a server's model.
   *
   * @param base address of the server; the page's own by default.
   * @param pinned hash of the manifest that is expected; any if it is null.
   */
  connect(base = "", pinned: string | null = null): Promise<ModelInfo> {
    return this.#call("connect", [new URL(base, location.href).href.replace(/\/$/, ""), pinned]);
  }

  /** Refuses a sample that the model is not for, with the code "length" or "number_range": before there are keys. */
  async check(values: readonly number[]): Promise<void> {
    await this.#call("check", [values]);
  }

  /**
   * Makes the secret and the keys that the server asks for, and sends these, a few limbs in memory at a time.
   * Connections that break are taken up again for some seconds. After an error "unreachable" or "busy" it goes on where
   * the server is when it is called again; after "unknown_keys" of another call it makes new keys.
   */
  prepareKeys(progress: Progress = () => {}): Promise<KeyReport> {
    return this.#call("prepareKeys", [], progress);
  }

  /** Encrypts a sample, has it evaluated, decrypts the answer. */
  infer(values: readonly number[], progress: Progress = () => {}): Promise<Answer> {
    return this.#call("infer", [values], progress);
  }

  /** What the server says that it has of this client. */
  seen(): Promise<Seen> {
    return this.#call("seen", []);
  }

  /** Bytes of all requests and answers of this session, counted where they leave the tab and come. */
  traffic(): Promise<Traffic> {
    return this.#call("traffic", []);
  }

  /** Ends what is on its way: it is refused with "cancelled". Keys go on where they were when `prepareKeys` is called again. */
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
   * Has the keys deleted on the server without waiting for an answer, and ends: for a page that is being closed. A
   * server that does not hear of it deletes them when they have not been used for some time.
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
      pending.progress(reply.done, reply.total);
      return;
    }
    this.#pending.delete(reply.id);
    if (reply.kind === "result") pending.resolve(reply.value);
    else pending.reject(new ClientError(reply.code as Code, reply.message, reply.details));
  }
}
