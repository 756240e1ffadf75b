/** The owner of the secret, for both packings of a manifest: checked parameters, keys, encryption and decryption. */

import type { Manifest } from "./manifest.js";
import { Client, ClientParameters, type KeyStream, SlotsClient, SlotsParameters } from "./wasm/keywright_client_wasm.js";

/** A client of one model. */
export interface Owner {
  /** The most numbers of a ciphertext. */
  readonly capacity: number;
  keyStream(): KeyStream;
  /** Encrypts the numbers of one ciphertext. */
  encrypt(numbers: Float64Array): Uint8Array;
  /** Decrypts the numbers of one ciphertext. */
  decrypt(bytes: Uint8Array): ArrayLike<number>;
  free(): void;
}

/** What the parameters of a manifest say, which is more than its author's word: they are checked as they are read. */
export interface Summary {
  readonly logN: number;
  readonly modulus: bigint;
  readonly insecure: boolean;
  /** Bits of a coefficient that is sent, and of one that comes back. */
  readonly sentBits: number;
  readonly returnedBits: number;
}

/** Reads the parameters of a manifest, before there is a secret. */
export function summary({ packing, client, parameters, inputLevel, outputLevel }: Manifest): Summary {
  if (packing === "coefficients") {
    const read = new ClientParameters(client);
    const { logN, modulus, insecure } = read;
    read.free();
    const bits = modulus.toString(2).length;
    return { logN, modulus, insecure, sentBits: bits, returnedBits: bits };
  }
  const read = new SlotsParameters(parameters);
  const { logN, modulus, insecure } = read;
  const [sentBits, returnedBits] = [read.bits(inputLevel), read.bits(outputLevel)];
  read.free();
  return { logN, modulus, insecure, sentBits, returnedBits };
}

/** Makes the secret of a manifest's client, from 32 random bytes. */
export function owner(manifest: Manifest, entropy: Uint8Array): Owner {
  return manifest.packing === "coefficients" ? thin(manifest, new Client(manifest.client, entropy)) : slots(manifest, new SlotsClient(manifest.parameters, entropy));
}

function thin({ parameters, keySet }: Manifest, client: Client): Owner {
  const one = 2 ** client.fractionBits;
  return {
    capacity: client.capacity,
    keyStream: () => client.keyStream(parameters, keySet),
    encrypt: (numbers) => client.encryptCompact(Int32Array.from(numbers, (number) => Math.round(number * one)), 0),
    decrypt: (bytes) => Float64Array.from(client.decrypt(bytes), (number) => number / one),
    free: () => client.free(),
  };
}

function slots({ keySet, inputLevel, inputRing, magnitude, parameters }: Manifest, client: SlotsClient): Owner {
  const read = new SlotsParameters(parameters);
  const { capacity } = read;
  read.free();
  return {
    capacity,
    keyStream: () => client.keyStream(keySet),
    encrypt: (numbers) => client.encrypt(numbers, inputLevel, inputRing, magnitude),
    decrypt: (bytes) => client.decrypt(bytes),
    free: () => client.free(),
  };
}
