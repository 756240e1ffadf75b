/** Codes of refusals, for programs. Codes of the server are passed through: see `keywright/errors/service.py`. */
export type Code =
  /** No server answers; what was uploaded so far is kept. */
  | "unreachable"
  /** The page cancelled it; what was uploaded so far is kept. */
  | "cancelled"
  /** The server answers with garbage, or with less than it announced. */
  | "invalid_reply"
  /** The manifest is invalid, or of another version. */
  | "manifest"
  /** The server has another model than the expected one. */
  | "other_model"
  /** The browser provides no randomness. */
  | "randomness"
  /** The page came neither over HTTPS nor from this machine. */
  | "insecure_page"
  /** The tab has no memory for the keys. */
  | "memory"
  /** Numbers outside the range of the model, or of another shape. */
  | "number_range"
  | "length"
  /** Bytes that are not a ciphertext or key of these parameters. */
  | "format"
  /** The answer belongs to another client: it needs another secret. */
  | "other_key"
  /** Parameters, or a key, below 128 bits of security. */
  | "insecure"
  /** The server asks for more keys, or larger messages, than this client makes. */
  | "demand"
  | "keys"
  /** The worker failed. */
  | "internal"
  /** Refusals of the server. */
  | "bad_request"
  | "head_too_large"
  | "no_such_path"
  | "wrong_host"
  | "too_large"
  | "secret_refused"
  | "invalid_object"
  /** The model is no longer served: `details.successor` is the hash of the next one, empty if there is none. */
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
 * Turns any thrown value into an error with a code.
 *
 * @param full whether the module can get no more memory. It ends in the same way without memory as after a bug.
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
    return new ClientError("internal", "This browser cannot run the client: it lacks WebAssembly with vectors. Use a browser released in 2023 or later.");
  }
  if (thrown instanceof Error) {
    const code = "code" in thrown && typeof thrown.code === "string" ? (thrown.code as Code) : "internal";
    return new ClientError(code, thrown.message);
  }
  return new ClientError("internal", String(thrown));
}
