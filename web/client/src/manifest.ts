import { ClientError } from "./errors.js";
import { countValues } from "./server.js";

/**
 * The places of a tensor's values. Value i of sample b is number `start[i] + b + k * stride` of all ciphertexts, each
 * of `size` numbers, for every `b < batch` and `k < repeat`. Of 2 `parts`, the second half of the samples is in the
 * second half of the ciphertexts, where the first half is in the others.
 */
export interface Places {
  readonly shape: readonly number[];
  readonly batch: number;
  readonly ciphertexts: number;
  readonly size: number;
  readonly start: readonly number[];
  readonly repeat: number;
  readonly stride: number;
  readonly parts: number;
}

/** The inputs and outputs of a served model. */
export interface Manifest {
  /** SHA-256 of the manifest's bytes, which identifies the model. */
  readonly hash: string;
  readonly name: string;
  readonly labels: readonly string[];
  /** Whether values are in coefficients, as thin clients send them, or in slots. */
  readonly packing: "coefficients" | "slots";
  /** The parameters of thin clients, as an object; empty for slots. */
  readonly client: Uint8Array;
  /** The parameters of the keys, as an object. */
  readonly parameters: Uint8Array;
  /** The head of the key set that the server requests. */
  readonly keySet: Uint8Array;
  readonly keyBytes: number;
  readonly input: Places;
  readonly output: Places;
  /** Levels of the ciphertexts that are sent, and that come back. */
  readonly inputLevel: number;
  readonly outputLevel: number;
  /** log2 of the degree of the ring in which slots are encrypted; 0 for the largest. */
  readonly inputRing: number;
  /** The lowest and the highest input of the model; infinite for slots without a range. */
  readonly inputRange: readonly [number, number];
  /** The divisor of inputs before encryption, a power of two: numbers in coefficients are at most 1. */
  readonly divisor: number;
  /** The magnitude that ciphertexts of slots declare; 0 for the parameters' own. */
  readonly magnitude: number;
  /** The factor of decrypted numbers. */
  readonly factor: number;
  readonly logN: number;
  /** The first prime of ciphertexts. */
  readonly modulus: bigint;
  /** Whether the parameters are an experiment's, without security. */
  readonly insecure: boolean;
}

/** Of manifests with one part of samples, and with two. */
const VERSIONS: readonly unknown[] = [4, 9];
/** Entries for steps of Python clients, which manifests of version 9 may have. */
const STEPS = ["normalised", "first_steps", "binning", "bits"];
/** Ciphertexts declare so many times the larger end of the range, rounded up to a power of two. */
const MARGIN = 2;
const MAX_LEVEL = 63;
const MAX_BYTES = 16 << 20;
/** Most values in the JSON of a manifest, which take far more memory than their bytes. */
const MAX_VALUES = 1 << 20;
const MAX_SIZE = 1 << 17;
/** Most numbers of a sample, or of an answer: the client allocates memory for them. */
const MAX_NUMBERS = 1 << 24;

/**
 * Reads a manifest and checks every number.
 *
 * @throws ClientError "manifest" if it is invalid, or for another kind of client.
 */
export async function readManifest(bytes: Uint8Array<ArrayBuffer>): Promise<Manifest> {
  // Browsers withhold this API from pages that could have been changed in transit.
  if (globalThis.crypto?.subtle === undefined) {
    throw new ClientError("insecure_page", "Load the page over HTTPS, or from this machine: a page in transit over plain HTTP can be changed.");
  }
  if (bytes.length > MAX_BYTES) throw refused(`it has ${bytes.length} bytes, at most ${MAX_BYTES} are read`);
  if (countValues(bytes) > MAX_VALUES) throw refused(`it has more than ${MAX_VALUES} values`);
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw refused("it is not JSON; is this the address of keywright serve?");
  }
  const entry = record(json, "the manifest");
  if (entry["format"] !== "keywright-manifest" || !VERSIONS.includes(entry["version"])) {
    throw refused(`format ${entry["format"]}, version ${entry["version"]}; this client reads keywright-manifest, versions ${VERSIONS.join(" and ")}`);
  }
  const step = STEPS.find((name) => name in entry);
  if (step !== undefined) throw refused(`it has the entry ${step}, a step of Python clients`);
  const packing = entry["packing"];
  if (packing !== "coefficients" && packing !== "slots") throw refused("its packing is unknown; this page may be too old");
  const [inputLevel, outputLevel] = ["input_level", "output_level"].map((name) => integer(entry[name], name, 0, MAX_LEVEL)) as [number, number];
  if (packing === "coefficients" && (inputLevel !== 0 || outputLevel !== 0)) throw refused("thin clients encrypt at level 0");
  const divisor = positive(entry["divisor"], "divisor");
  if (!Number.isInteger(Math.log2(divisor))) throw refused(`divisor ${divisor} is no power of two`);
  const inputRange = range(entry["input_range"], packing === "coefficients" ? divisor : Infinity, packing === "slots");
  const logN = integer(entry["log_n"], "log_n", 10, 17);
  const [input, output] = [places(entry["input"], "input"), places(entry["output"], "output")];
  if (input.parts !== output.parts) throw refused(`${input.parts} parts of samples go in and ${output.parts} come out`);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return {
    hash: Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join(""),
    name: text(entry["name"], "name"),
    packing,
    labels: list(entry["labels"], "labels").map((label) => text(label, "a label")),
    client: base64(entry["client"], "client"),
    parameters: base64(entry["parameters"], "parameters"),
    keySet: base64(entry["key_set"], "key_set"),
    keyBytes: integer(entry["key_bytes"], "key_bytes", 1, 2 ** 48),
    input,
    output,
    inputLevel,
    outputLevel,
    inputRing: entry["input_ring"] === undefined ? 0 : integer(entry["input_ring"], "input_ring", 10, logN - 1),
    inputRange,
    divisor,
    magnitude: inputRange[1] === Infinity ? 0 : 2 ** Math.ceil(Math.log2(MARGIN * Math.max(...inputRange.map(Math.abs)))) / divisor,
    factor: positive(entry["factor"], "factor"),
    logN,
    modulus: decimal(entry["modulus"], "modulus"),
    insecure: flag(entry["insecure"], "insecure"),
  };
}

/**
 * Returns the numbers of all ciphertexts, `size` of each, with a sample's values at the places of every sample, since
 * each must hold valid values.
 */
export function pack({ start, batch, ciphertexts, size, repeat, stride, parts }: Places, values: readonly number[]): Float64Array {
  const packed = new Float64Array(ciphertexts * size);
  for (let part = 0; part < packed.length; part += packed.length / parts) {
    for (let k = 0; k < repeat; k++) {
      start.forEach((place, index) => {
        const first = part + place + k * stride;
        packed.fill(values[index] ?? 0, first, first + batch / parts);
      });
    }
  }
  return packed;
}

function refused(why: string): ClientError {
  return new ClientError("manifest", `The server's manifest cannot be used: ${why}.`);
}

function record(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refused(`${what} is no object`);
  return value as Record<string, unknown>;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw refused(`${what} is no list`);
  return value;
}

function text(value: unknown, what: string, most = 200): string {
  if (typeof value !== "string" || value.length > most || /[\p{C}\p{Zl}\p{Zp}]/u.test(value)) {
    throw refused(`${what} is no text of at most ${most} printable characters`);
  }
  return value;
}

function integer(value: unknown, what: string, low: number, high: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < low || value > high) {
    throw refused(`${what} must be an integer from ${low} to ${high}`);
  }
  return value;
}

function positive(value: unknown, what: string): number {
  if (typeof value !== "number" || !(value > 0) || !Number.isFinite(value)) throw refused(`${what} must be above 0`);
  return value;
}

function flag(value: unknown, what: string): boolean {
  if (typeof value !== "boolean") throw refused(`${what} must be true or false`);
  return value;
}

/** The lowest and the highest input, of at most `most` in size; infinite if they are unbounded and may be. */
function range(value: unknown, most: number, unbounded: boolean): readonly [number, number] {
  if (unbounded && value === null) return [-Infinity, Infinity];
  const [low, high, ...more] = list(value, "input_range");
  if (typeof low !== "number" || typeof high !== "number" || more.length > 0 || !(-most <= low && low < high && high <= most)) {
    throw refused(`input_range must be two numbers in order, of at most the divisor, ${most}`);
  }
  return [low, high];
}

function decimal(value: unknown, what: string): bigint {
  if (typeof value !== "string" || !/^[1-9][0-9]{0,18}$/.test(value)) throw refused(`${what} must be decimal digits`);
  return BigInt(value);
}

function base64(value: unknown, what: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text(value, what, MAX_BYTES)), (character) => character.charCodeAt(0));
  } catch {
    throw refused(`${what} is not base64`);
  }
}

function places(value: unknown, what: string): Places {
  const entry = record(value, what);
  const shape = list(entry["shape"], what).map((extent) => integer(extent, `${what}.shape`, 1, MAX_SIZE));
  const ciphertexts = integer(entry["ciphertexts"], `${what}.ciphertexts`, 1, 1024);
  const size = integer(entry["size"], `${what}.size`, 1, Math.min(MAX_SIZE, Math.floor(MAX_NUMBERS / ciphertexts)));
  const repeat = integer(entry["repeat"], `${what}.repeat`, 1, size);
  const stride = integer(entry["stride"], `${what}.stride`, 1, size);
  const parts = integer("parts" in entry ? entry["parts"] : 1, `${what}.parts`, 1, 2);
  const batch = integer(entry["batch"], `${what}.batch`, 1, size * parts);
  if (batch % parts > 0 || ciphertexts % parts > 0) {
    throw refused(`${what} has ${batch} samples in ${ciphertexts} ciphertexts, not ${parts} equal parts`);
  }
  const last = (ciphertexts * size - batch) / parts - (repeat - 1) * stride;
  const start = list(entry["start"], what).map((place) => integer(place, `${what}.start`, 0, last));
  if (start.length !== shape.reduce((product, extent) => product * extent, 1)) {
    throw refused(`${what} has ${start.length} places for the shape ${shape.join(" x ")}`);
  }
  if (batch * start.length * repeat > ciphertexts * size) {
    throw refused(`${what} has ${start.length} values ${repeat} times for ${batch} samples, more than its ${ciphertexts * size} places`);
  }
  return { shape, batch, ciphertexts, size, start, repeat, stride, parts };
}
