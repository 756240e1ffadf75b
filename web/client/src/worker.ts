/** The client: all secrets stay in this worker. */

import { asClientError, ClientError } from "./errors.js";
import { type Manifest, pack, readManifest } from "./manifest.js";
import type { Answer, Calls, Demands, KeyReport, Method, ModelInfo, Reply, Request, Seen, Stage, Traffic } from "./protocol.js";
import { type Owner, owner, type Summary, summary } from "./owner.js";
import { count, goesOn, identifier, pause, PIECE, Server } from "./server.js";
import init, { type InitOutput, type KeyStream } from "./wasm/keywright_client_wasm.js";

const MAX_MANIFEST = 16 << 20;
const POLL_MS = 50;
/** Defaults of the most bytes of keys and of the most keys. */
const KEY_BYTES = 4 * 2 ** 30;
const KEY_COUNT = 4096;
const PAGE_BYTES = 65536;
/** The bound on the module's memory, for any keys. */
const MEMORY_BYTES = 64 << 20;
/** How often an upload returns to bytes that the server lost before it fails. */
const REWINDS = 5;
/** How often keys are made anew because the server no longer knows the upload. */
const RENEWALS = 2;

/** How long the pace of making keys is measured, in milliseconds. */
const PACE_MS = 250;
/** Bytes at the beginning of a question that describe it: lengths, kinds, parameters. The rest is the ciphertext. */
const HEADER_BYTES = 256;
/** Most bytes of a question that a page gets to see. */
const SAMPLE_BYTES = 1 << 14;

type Progress = (done: number, total: number, stage?: Stage) => void;

let wasm: InitOutput;
let server: Server;
let manifest: Manifest;
let accepted: Required<Demands>;
let connected = false;
let client: Owner | null = null;
let keys: string | null = null;

/** Keys during the upload. */
interface Upload {
  readonly identifier: string;
  readonly stream: KeyStream;
  /** Milliseconds. */
  making: number;
  sending: number;
}
let upload: Upload | null = null;
let preparing: Promise<KeyReport> | null = null;

/** 32 random bytes of the browser. */
function entropy(): Uint8Array<ArrayBuffer> {
  if (typeof globalThis.crypto?.getRandomValues !== "function") {
    throw new ClientError("randomness", "This browser provides no randomness, which keys need. Use another browser.");
  }
  return crypto.getRandomValues(new Uint8Array(32));
}

async function connect(base: string, pinned: string | null, demands: Demands = {}): Promise<ModelInfo> {
  // A session that moves to another model begins anew.
  if (connected) await close().catch(() => undefined);
  connected = false;
  wasm = await init({ module_or_path: new URL("./wasm/keywright_client_wasm_bg.wasm", import.meta.url) });
  server = new Server(base, () => reply({ id: -1, kind: "pause" }));
  const bytes = await server.bytes("GET", "/v1/model", null, MAX_MANIFEST);
  const read = await readManifest(bytes);
  if (pinned !== null && read.hash !== pinned) {
    throw new ClientError("other_model", "The server has another model than the expected one.", {
      found: read.hash,
      expected: pinned,
    });
  }
  accepted = { insecure: false, keyBytes: KEY_BYTES, keyCount: KEY_COUNT, ...demands };
  const known = described(read);
  requireAccepted(read);
  manifest = read;
  connected = true;
  return {
    hash: manifest.hash,
    name: manifest.name,
    labels: manifest.labels,
    inputShape: manifest.input.shape,
    inputRange: manifest.inputRange,
    keyBytes: manifest.keyBytes,
    logN: manifest.logN,
    modulusBits: manifest.modulus.toString(2).length,
    insecure: manifest.insecure,
    packing: manifest.packing,
    ...sizes(manifest, known),
  };
}

/**
 * Approximate bytes of a question, one polynomial of each seeded ciphertext, and of its answer, two. Thin clients send
 * only the coefficients that carry numbers.
 */
function sizes(
  { packing, input, output, inputRing, logN }: Manifest,
  { sentBits, returnedBits }: Summary,
): { questionBytes: number; answerBytes: number } {
  const each = packing === "coefficients" ? input.size : 2 ** (inputRing || logN);
  return {
    questionBytes: Math.round((input.ciphertexts * each * sentBits) / 8),
    answerBytes: Math.round((output.ciphertexts * 2 * 2 ** logN * returnedBits) / 8),
  };
}

/** Returns what the parameters of a manifest say, and refuses one that contradicts them. */
function described(read: Manifest): Summary {
  const known = summary(read);
  const agree = known.logN === read.logN && known.modulus === read.modulus && known.insecure === read.insecure;
  if (!agree) throw new ClientError("manifest", "The server's manifest contradicts its own parameters.");
  return known;
}

/**
 * Refuses what this client should not make, before there is a secret. Parameters without this switch are checked
 * against the bound as they are read, and every key when its stream is made.
 */
function requireAccepted({ insecure, keyBytes, logN }: Manifest): void {
  if (insecure && !accepted.insecure) {
    const message =
      `The server's parameters have less than 128 bits of security (N = 2^${logN}, without the check of keys), so the ` +
      "server may be able to read what this client encrypts. Use another server.";
    throw new ClientError("insecure", message, { logN });
  }
  within("bytes of keys", keyBytes, accepted.keyBytes);
}

function within(what: string, value: number, maximum: number): void {
  if (value <= maximum) return;
  throw new ClientError("demand", `The server asks for ${value} ${what}; this client takes at most ${maximum}.`, { value, maximum });
}

/**
 * Measures the bytes of keys that the tab makes in a second. The secret of these keys is forgotten with them. The start
 * is not counted: it happens once.
 */
async function pace(): Promise<number> {
  const trial = owner(manifest, entropy());
  const stream = trial.keyStream();
  try {
    stream.next();
    const start = performance.now();
    let made = 0;
    for (;;) {
      const part = stream.next();
      if (part === undefined) break;
      made += part.length;
      if (performance.now() - start > PACE_MS) break;
    }
    return (1000 * made) / Math.max(performance.now() - start, 1);
  } finally {
    release(stream);
    release(trial);
  }
}

/** The seconds that the server's list of models states for this one. */
async function evaluationSeconds(): Promise<number | null> {
  const { models } = await server.json("GET", "/v1/models");
  const line: unknown = Array.isArray(models) ? models.find((each: { model?: unknown }) => each.model === manifest.hash) : undefined;
  const seconds = (line as { seconds?: unknown } | undefined)?.seconds;
  return typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds) ? seconds : null;
}

/** Makes and sends the keys once, even if several calls ask for them meanwhile. */
function prepareKeys(progress: Progress): Promise<KeyReport> {
  preparing ??= makeKeys(progress).finally(() => (preparing = null));
  return preparing;
}

async function makeKeys(progress: Progress): Promise<KeyReport> {
  if (keys !== null) discard(keys);
  keys = null;
  for (let renewals = 0; ; renewals++) {
    upload ??= await begin();
    try {
      await send(upload, (received) => progress(received, manifest.keyBytes));
      break;
    } catch (error) {
      // After a broken connection the client asks the server for its place; after any other error it discards the
      // upload.
      if (goesOn(error)) throw error;
      discard(upload.identifier);
      drop();
      // The server was restarted and lost its state.
      if (!(error instanceof ClientError && error.code === "unknown_keys") || renewals === RENEWALS) throw error;
    }
  }
  const { identifier: name, stream, making, sending } = upload;
  const report = { bytes: stream.bytes, keys: stream.keys, making, sending, peakMemory: wasm.memory.buffer.byteLength };
  upload = null;
  release(stream);
  keys = name;
  return report;
}

/** Sends the keys from the byte that the server expects. One piece travels while the next one is made. */
async function send(upload: Upload, progress: (received: number) => void): Promise<void> {
  const path = `/v1/keys/${upload.identifier}`;
  for (let rewinds = 0; ; rewinds++) {
    let place = count(await server.persist(() => server.json("GET", path)), "received");
    upload.stream.seek(place);
    progress(place);
    try {
      let onItsWay = Promise.resolve();
      for (;;) {
        const piece = timed(upload, "making", () => make(upload.stream));
        const start = performance.now();
        await onItsWay;
        upload.sending += performance.now() - start;
        if (piece.length === 0) return checked(path);
        onItsWay = server.upload(path, place, piece, progress);
        // Awaited after the next piece is made, so an earlier rejection must not count as unhandled.
        onItsWay.catch(() => undefined);
        place += piece.length;
      }
    } catch (error) {
      if (!(error instanceof ClientError && error.code === "wrong_offset") || rewinds === REWINDS) throw error;
    }
  }
}

/**
 * Waits until the server has checked all keys. It does so after the last byte; many keys take longer than a request
 * may.
 */
async function checked(path: string): Promise<void> {
  while ((await server.persist(() => server.json("GET", path)))["ready"] !== true) await pause(POLL_MS);
}

/** The next bytes of the keys, about as many as a request holds; empty after the last. */
function make(stream: KeyStream): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length < PIECE) {
    const part = stream.next();
    if (part === undefined) break;
    parts.push(part);
    length += part.length;
  }
  const piece = new Uint8Array(length);
  parts.reduce((place, part) => (piece.set(part, place), place + part.length), 0);
  return piece;
}

function timed<T>(upload: Upload, what: "making" | "sending", work: () => T): T {
  const start = performance.now();
  const result = work();
  upload[what] += performance.now() - start;
  return result;
}

/** Whether the module cannot get another megabyte. */
function full(): boolean {
  try {
    wasm.memory.grow((1 << 20) / PAGE_BYTES);
    return false;
  } catch {
    return true;
  }
}

/** Makes the secret, and allocates the keys on the server. */
async function begin(): Promise<Upload> {
  // Requested and released: a tab without enough memory reports that before work begins.
  new WebAssembly.Memory({ initial: MEMORY_BYTES / PAGE_BYTES, maximum: MEMORY_BYTES / PAGE_BYTES });
  client ??= owner(manifest, entropy());
  if (client.capacity < Math.max(manifest.input.size, manifest.output.size)) {
    throw new ClientError("manifest", `The manifest has places for more numbers than the ${client.capacity} of a ciphertext.`);
  }
  const stream = client.keyStream();
  let name: string;
  try {
    within("keys", stream.keys, accepted.keyCount);
    if (stream.bytes !== manifest.keyBytes) {
      throw new ClientError("manifest", `The manifest says ${manifest.keyBytes} bytes of keys, they have ${stream.bytes}.`);
    }
    name = identifier(await server.json("POST", "/v1/keys", JSON.stringify({ model: manifest.hash })), "keys");
  } catch (error) {
    release(stream);
    throw error;
  }
  reply({ id: -1, kind: "keys", address: `${server.base}/v1/keys/${name}` });
  return { identifier: name, stream, making: 0, sending: 0 };
}

/** Deletes keys on the server, if it can be reached. */
function discard(name: string): void {
  void server.json("DELETE", `/v1/keys/${name}`).catch(() => undefined);
}

function drop(): void {
  release(upload?.stream);
  upload = null;
}

/** Frees the module's memory of an object, which is impossible if a call of the module was aborted. */
function release(object: { free(): void } | null | undefined): void {
  try {
    object?.free();
  } catch {
    // The worker is unusable, and the receiver of the error ends it.
  }
}

async function infer(values: readonly number[], progress: Progress): Promise<Answer> {
  if (client === null || keys === null) throw new ClientError("keys_incomplete", "There are no keys yet: call prepareKeys first.");
  await check(values);
  const { output } = manifest;
  let start = performance.now();
  const message = frame(encrypt(client, values));
  const encrypting = performance.now() - start;
  start = performance.now();
  // Sent again unchanged after a broken connection: at worst it is evaluated twice.
  let job = await tell(() => server.json("POST", `/v1/keys/${keys}/jobs`, message));
  const name = identifier(job, "job");
  while (job["state"] === "waiting" || job["state"] === "running") {
    await pause(POLL_MS);
    job = await tell(() => server.json("GET", `/v1/jobs/${name}`));
    progress(count(job, "done"), count(job, "total"), job["state"] === "waiting" ? "waiting" : "running");
  }
  const limit = output.ciphertexts * (2 * 2 ** manifest.logN * 8 * (manifest.outputLevel + 1) + 8192);
  const reply = await tell(() => server.bytes("GET", `/v1/jobs/${name}/result`, null, limit));
  const evaluating = Number(job["seconds"]) * 1000;
  const waiting = performance.now() - start - evaluating;
  start = performance.now();
  const numbers = unframe(reply, output.ciphertexts).map((bytes) => client!.decrypt(bytes));
  const scores = output.start.map((place) => {
    const number = numbers[Math.floor(place / output.size)]?.[place % output.size];
    if (number === undefined) throw new ClientError("invalid_reply", "The answer has fewer numbers than the manifest says.");
    return number * manifest.factor;
  });
  const decrypting = performance.now() - start;
  // The body of the first ciphertext, after its header.
  const sample = message.slice(HEADER_BYTES, HEADER_BYTES + SAMPLE_BYTES);
  return { scores, sent: message.length, received: reply.length, sample, encrypting, evaluating, decrypting, waiting };
}

/**
 * A request about the keys, repeated after a broken connection. Keys that the server no longer has can be made anew.
 */
async function tell<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await server.persist(request);
  } catch (error) {
    if (error instanceof ClientError && error.code === "unknown_keys") keys = null;
    throw error;
  }
}

/** Refuses a sample outside of the model's range, before anything is made or sent. */
async function check(values: readonly number[]): Promise<null> {
  const { input, inputRange } = manifest;
  if (values.length !== input.start.length) {
    throw new ClientError("length", `The model takes ${input.start.length} numbers, got ${values.length}.`);
  }
  const [low, high] = inputRange;
  const bad = values.findIndex((value) => !(low <= value && value <= high));
  if (bad >= 0) {
    throw new ClientError("number_range", `Number ${bad} is ${values[bad]}; the model takes ${low} to ${high}.`);
  }
  return null;
}

/** Encrypts the values of a sample. */
function encrypt(client: Owner, values: readonly number[]): Uint8Array[] {
  const { input, divisor } = manifest;
  const packed = pack(input, values.map((value) => value / divisor));
  return Array.from({ length: input.ciphertexts }, (_, index) =>
    client.encrypt(packed.subarray(index * input.size, (index + 1) * input.size)),
  );
}

/** Joins objects into one message: each follows its length, 4 bytes, little-endian. */
function frame(objects: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(objects.reduce((sum, bytes) => sum + 4 + bytes.length, 0));
  const view = new DataView(message.buffer);
  let place = 0;
  for (const bytes of objects) {
    view.setUint32(place, bytes.length, true);
    message.set(bytes, place + 4);
    place += 4 + bytes.length;
  }
  return message;
}

function unframe(message: Uint8Array<ArrayBuffer>, expected: number): Uint8Array[] {
  const view = new DataView(message.buffer);
  const objects: Uint8Array[] = [];
  let place = 0;
  while (place + 4 <= message.length) {
    const end = place + 4 + view.getUint32(place, true);
    if (end > message.length) break;
    objects.push(message.subarray(place + 4, end));
    place = end;
  }
  if (place !== message.length || objects.length !== expected) {
    throw new ClientError("invalid_reply", `The server's answer is damaged: it is not the ${expected === 1 ? "ciphertext" : `${expected} ciphertexts`} that the manifest announces.`);
  }
  return objects;
}

async function seen(): Promise<Seen> {
  const entry = await tell(() => server.json("GET", `/v1/keys/${keys}/seen`));
  const objects = entry["objects"];
  if (!Array.isArray(objects)) throw new ClientError("invalid_reply", "The server's answer has no list of the objects that it saw.");
  return {
    secretKeys: count(entry, "secret_keys"),
    objects: objects.map((object: Record<string, unknown>) => ({
      direction: String(object["direction"]),
      what: String(object["what"]),
      size: count(object, "size"),
      sample: String(object["sample"]),
    })),
  };
}

async function traffic(): Promise<Traffic> {
  return { ...server.traffic };
}

async function cancel(): Promise<null> {
  server.cancel();
  return null;
}

async function close(): Promise<null> {
  const name = keys ?? upload?.identifier;
  try {
    if (name !== undefined) await server.json("DELETE", `/v1/keys/${name}`);
  } finally {
    // Also if the request fails, or the server has forgotten the keys.
    reply({ id: -1, kind: "keys", address: null });
    drop();
    release(client);
    [client, keys] = [null, null];
  }
  return null;
}

const calls: { [M in Method]: (progress: Progress, parameters: Parameters<Calls[M]>) => Promise<ReturnType<Calls[M]>> } = {
  connect: (_, [base, pinned, demands]) => connect(base, pinned, demands),
  pace: () => pace(),
  evaluationSeconds: () => evaluationSeconds(),
  check: (_, [values]) => check(values),
  prepareKeys: (progress) => prepareKeys(progress),
  infer: (progress, [values]) => infer(values, progress),
  seen: () => seen(),
  traffic: () => traffic(),
  cancel: () => cancel(),
  close: () => close(),
};

function reply(message: Reply): void {
  postMessage(message);
}

addEventListener("message", async (event: MessageEvent<Request>) => {
  const { id, method, parameters } = event.data;
  try {
    if (!connected && method !== "connect" && method !== "close") {
      throw new ClientError("bad_request", "There is no model yet: call connect first.");
    }
    // Requests after a cancellation are new work.
    if (connected && method !== "cancel" && method !== "traffic") server.resume();
    const progress: Progress = (done, total, stage) => reply({ id, kind: "progress", done, total, ...(stage && { stage }) });
    reply({ id, kind: "result", value: await calls[method](progress, parameters as never) });
  } catch (thrown) {
    const { code, message, details } = asClientError(thrown, full);
    reply({ id, kind: "error", code, message, details });
  }
});
