/** Why a client refuses, for programs. Codes of the server are passed through: see `keywright/serve/errors.py`. */
export type Code =
  /** No server answers; what was uploaded so far is kept. */
  | "unreachable"
  /** The page cancelled it; what was uploaded so far is kept. */
  | "cancelled"
  /** A server that answers garbage, or less than it announced. */
  | "invalid_reply"
  /** A manifest that is not understood, or of another version. */
  | "manifest"
  /** The server has another model than the one that is expected. */
  | "other_model"
  /** The browser gives no randomness. */
  | "randomness"
  /** The page came neither over HTTPS nor from this machine. */
  | "insecure_page"
  /** The tab cannot have the memory that the keys take. */
  | "memory"
  /** Numbers outside the range of the model, or of another shape. */
  | "number_range"
  | "length"
  /** Bytes that are no ciphertext or key of these parameters. */
  | "format"
  /** An answer to somebody else: another secret decrypts it. */
  | "other_key"
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
  /** A model that is served no more: `details.successor` is the hash of the next one, empty if there is none. */
  | "retired"
  | "unknown_keys"
  | "unknown_job"
  | "wrong_offset"
  | "keys_incomplete"
  | "not_done"
  | "busy"
  | "disk"
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

/**
 * Whatever was thrown, as an error with a code.
 *
 * @param full whether the module can have no more memory: it ends in the same way when it is refused some, and when it is wrong.
 */
export function asClientError(thrown: unknown, full: () => boolean): ClientError {
  if (thrown instanceof ClientError) return thrown;
  if (thrown instanceof RangeError || (thrown instanceof WebAssembly.RuntimeError && full())) {
    return new ClientError(
      "memory",
      "The tab has no memory left for this. Close other tabs, or use a machine with more memory, and reload the page.",
    );
  }
  if (thrown instanceof WebAssembly.RuntimeError) {
    return new ClientError("internal", `The client failed (${thrown.message}) and cannot go on. Reload the page.`);
  }
  if (thrown instanceof WebAssembly.CompileError) {
    return new ClientError("internal", "This browser cannot run the client, which needs WebAssembly with vectors: browsers since 2023 have it.");
  }
  if (thrown instanceof Error) {
    const code = "code" in thrown && typeof thrown.code === "string" ? (thrown.code as Code) : "internal";
    return new ClientError(code, thrown.message);
  }
  return new ClientError("internal", String(thrown));
}
