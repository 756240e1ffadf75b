/** Why a client refuses, for programs. Codes of the server are passed through: see `keywright/serve/errors.py`. */
export type Code =
  /** No server answers; what was uploaded so far is kept. */
  | "unreachable"
  /** A server that answers garbage, or less than it announced. */
  | "invalid_reply"
  /** A manifest that is not understood, or of another version. */
  | "manifest"
  /** The server has another model than the one that is expected. */
  | "other_model"
  /** The browser gives no randomness. */
  | "randomness"
  /** The tab cannot have the memory that the keys take. */
  | "memory"
  /** Numbers outside the range of the model, or of another shape. */
  | "number_range"
  | "length"
  /** Bytes that are no ciphertext or key of these parameters. */
  | "format"
  | "insecure"
  | "keys"
  /** The worker failed. */
  | "internal"
  /** What the server refuses. */
  | "bad_request"
  | "no_such_path"
  | "wrong_host"
  | "too_large"
  | "secret_refused"
  | "invalid_object"
  | "unknown_keys"
  | "unknown_job"
  | "wrong_offset"
  | "keys_incomplete"
  | "not_done"
  | "busy"
  | "evaluation_failed"
  | "failed";

/** An error with a code for programs and a sentence for people. */
export class ClientError extends Error {
  override name = "ClientError";

  constructor(
    readonly code: Code,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** Whatever was thrown, as an error with a code. */
export function asClientError(thrown: unknown): ClientError {
  if (thrown instanceof ClientError) return thrown;
  if (thrown instanceof WebAssembly.RuntimeError || thrown instanceof RangeError) {
    return new ClientError(
      "memory",
      "The tab has no memory left for this. Close other tabs, or use a machine with more memory, and reload the page.",
    );
  }
  if (thrown instanceof Error) {
    const code = "code" in thrown && typeof thrown.code === "string" ? (thrown.code as Code) : "internal";
    return new ClientError(code, thrown.message);
  }
  return new ClientError("internal", String(thrown));
}
