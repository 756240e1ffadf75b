import { ClientError, type Code } from "./errors.js";

const MAX_JSON = 1 << 20;
/** Most values of an answer in JSON, which take far more memory than their bytes. */
const MAX_VALUES = 1 << 16;
/** Bytes of the longest request of an upload. */
export const PIECE = 1 << 20;
/** Retries of a request without progress: some 16 to 20 seconds. */
const RETRIES = 8;
/** How often each byte of an upload is sent on average, at most: the server says how many have arrived. */
const SENDINGS = 4;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
const TIMEOUT_MS = 60_000;

/** A server as a client sees it: requests, with the length and the kind of answers checked. */
export class Server {
  /** Bytes of the bodies of all requests that began and of all answers that arrived, without headers. */
  readonly traffic = { sent: 0, received: 0, requests: 0 };
  #stop = new AbortController();

  /**
   * @param base address, without the path of the service.
   * @param onPause called before a failed request is made again.
   */
  constructor(
    readonly base: string,
    private readonly onPause: () => void = () => {},
  ) {}

  /** Ends the current request, and refuses others until `resume`. */
  cancel(): void {
    this.#stop.abort();
  }

  /** Allows requests again. */
  resume(): void {
    if (this.#stop.signal.aborted) this.#stop = new AbortController();
  }

  /**
   * One request.
   *
   * @param limit most bytes of an answer.
   * @throws ClientError "unreachable", "cancelled", "invalid_reply", or the code of the server's refusal.
   */
  async bytes(
    method: string,
    path: string,
    body: Uint8Array<ArrayBuffer> | string | null,
    limit: number,
    headers: Record<string, string> = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    // Not AbortSignal.any, which browsers have had only since 2024.
    const [stop, request] = [this.#stop.signal, new AbortController()];
    const end = () => request.abort();
    const timer = setTimeout(end, TIMEOUT_MS);
    stop.addEventListener("abort", end, { once: true });
    try {
      if (stop.aborted) end();
      this.traffic.requests++;
      this.traffic.sent += typeof body === "string" ? new TextEncoder().encode(body).length : (body?.length ?? 0);
      const response = await fetch(this.base + path, { method, body, headers, signal: request.signal, redirect: "error" });
      return await this.#answer(response, limit);
    } catch (error) {
      if (stop.aborted) throw new ClientError("cancelled", "Cancelled. The server keeps the keys that it has.");
      if (error instanceof ClientError) throw error;
      throw new ClientError("unreachable", "The server does not answer. Is keywright serve running?");
    } finally {
      clearTimeout(timer);
      stop.removeEventListener("abort", end);
    }
  }

  /** The body of an answer. */
  async #answer(response: Response, limit: number): Promise<Uint8Array<ArrayBuffer>> {
    const announced = Number(response.headers.get("Content-Length") ?? Number.NaN);
    if (!(announced <= limit)) {
      throw new ClientError("invalid_reply", `The server announces ${announced} bytes; at most ${limit} are expected.`);
    }
    let data: Uint8Array<ArrayBuffer>;
    try {
      data = await whole(response, limit);
    } catch (error) {
      if (error instanceof ClientError) throw error;
      const message = `The answer of the server breaks off before its ${announced} bytes.`;
      throw new ClientError("invalid_reply", message, { announced, cut: true });
    }
    this.traffic.received += data.length;
    if (!response.ok) throw refusal(response.status, data);
    return data;
  }

  /** A request whose answer is a JSON object; throws as `bytes`. */
  async json(
    method: string,
    path: string,
    body: Uint8Array<ArrayBuffer> | string | null = null,
    headers: Record<string, string> = {},
  ): Promise<Record<string, unknown>> {
    const entry = parse(await this.bytes(method, path, body, MAX_JSON, headers));
    if (entry === null) {
      throw new ClientError("invalid_reply", "The server's answer is not a JSON object. Is it keywright serve?");
    }
    return entry;
  }

  /** Repeats a request a few times if it failed, if the server had no room, or if the answer broke off. */
  async persist<T>(request: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await request();
      } catch (error) {
        const again = error instanceof ClientError && (isBreak(error) || error.details["cut"] === true);
        if (!again || failures === RETRIES) throw error;
        await this.#pause(failures);
      }
    }
  }

  /**
   * Sends bytes of an upload. After a broken connection it resumes at the byte that the server expects.
   *
   * @param start place of the first byte in the whole upload.
   * @param sent called with the number of bytes that the server has.
   * @throws ClientError "unreachable" if the server stays unreachable; "wrong_offset" if it has lost bytes before
   * these; "invalid_reply" if it takes none of them, however often they are sent.
   */
  async upload(
    path: string,
    start: number,
    bytes: Uint8Array<ArrayBuffer>,
    sent: (received: number) => void,
  ): Promise<void> {
    const end = start + bytes.length;
    let received = start;
    let failures = 0;
    // Only what was never reached before is progress: a server can go back and forth.
    let furthest = start;
    let most = SENDINGS * bytes.length + (RETRIES + 1) * PIECE;
    const advance = () => {
      if (received > furthest) [failures, furthest] = [0, received];
    };
    while (received < end) {
      const from = received - start;
      if (failures > RETRIES || most < 0) {
        throw new ClientError("invalid_reply", `The server takes no more than ${furthest - start} of ${bytes.length} bytes.`);
      }
      if (from < 0) throw new ClientError("wrong_offset", "The server has lost bytes of the keys that it had received.", { received });
      try {
        const piece = bytes.subarray(from, from + PIECE);
        most -= piece.length;
        const state = await this.json("PATCH", path, piece, {
          "Content-Type": "application/partial-upload",
          "Upload-Offset": String(received),
        });
        received = within(count(state, "received"), end);
        failures += 1;
        advance();
        sent(received);
      } catch (error) {
        const code = error instanceof ClientError ? error.code : "internal";
        if (code === "wrong_offset") {
          received = within(count({ ...(error as ClientError).details }, "received"), end);
        } else if (code !== "unreachable" && code !== "busy" && code !== "invalid_reply" && code !== "failed") {
          throw error;
        }
        if (++failures > RETRIES) throw error;
        await this.#pause(failures);
        if (code === "wrong_offset") continue;
        received = within(await this.received(path, received), end);
        // Part of a piece that was cut may have arrived.
        advance();
      }
    }
  }

  #pause(failures: number): Promise<void> {
    this.onPause();
    return pause(Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS), this.#stop.signal);
  }

  /** The number of bytes of an upload that arrived; `otherwise` if the server cannot be asked. */
  async received(path: string, otherwise: number): Promise<number> {
    try {
      return count(await this.json("GET", path), "received");
    } catch (error) {
      if (error instanceof ClientError && error.code === "unreachable") return otherwise;
      throw error;
    }
  }
}

/** The body of a response, of at most `limit` bytes: a compressed one is longer than it announces. */
async function whole(response: Response, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for (const reader = response.body?.getReader(); reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) {
      void reader.cancel().catch(() => undefined);
      throw new ClientError("invalid_reply", `The answer of the server has more than the ${limit} bytes that are expected.`);
    }
    parts.push(value);
  }
  const data = new Uint8Array(length);
  parts.reduce((place, part) => (data.set(part, place), place + part.length), 0);
  return data;
}

/** Whether the work was interrupted and resumes at the next call. */
export function goesOn(error: unknown): boolean {
  return isBreak(error) || (error instanceof ClientError && error.code === "cancelled");
}

/** Whether the server was unreachable or had no room; it keeps what it has. */
export function isBreak(error: unknown): boolean {
  return error instanceof ClientError && (error.code === "unreachable" || error.code === "busy");
}

/** A count of bytes, at most what was sent. */
function within(received: number, sent: number): number {
  if (received > sent) {
    throw new ClientError("invalid_reply", `The server says that it has ${received} bytes; ${sent} were sent.`);
  }
  return received;
}

/** An integer of an answer. */
export function count(entry: Record<string, unknown>, name: string): number {
  const value = entry[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new ClientError("invalid_reply", `The server's answer has no number "${name}".`);
  }
  return value;
}

/** An identifier of an answer. */
export function identifier(entry: Record<string, unknown>, name: string): string {
  const value = entry[name];
  if (typeof value !== "string" || !/^[0-9a-f]{32}$/.test(value)) {
    throw new ClientError("invalid_reply", `The server's answer has no identifier "${name}".`);
  }
  return value;
}

/** Waits, but not beyond a cancellation. */
export function pause(milliseconds: number, stop?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      stop?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    stop?.addEventListener("abort", end);
  });
}

/** Counts commas and opening brackets in JSON, in texts too: each value of a document follows one. */
export function countValues(data: Uint8Array): number {
  let count = 1;
  for (const byte of data) if (byte === 0x2c || byte === 0x5b || byte === 0x7b) count += 1;
  return count;
}

function parse(data: Uint8Array): Record<string, unknown> | null {
  if (countValues(data) > MAX_VALUES) return null;
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** The error of a refusal by the server. */
export function refusal(status: number, data: Uint8Array): ClientError {
  const error = parse(data)?.["error"];
  if (typeof error === "object" && error !== null && "type" in error && "message" in error) {
    const details = "details" in error && typeof error.details === "object" ? error.details : null;
    return new ClientError(String(error.type) as Code, String(error.message).slice(0, 1000), { ...details });
  }
  return new ClientError("invalid_reply", `The server answers with status ${status} and no reason. Is it keywright serve?`);
}
