/**
 * The timed operations, the same in Node and in Chromium. Every timed result is decrypted and compared with the input.
 */

/**
 * Times of a call in milliseconds, sorted. Leaves out the first calls, since browsers recompile a module that is busy.
 */
export function measure(runs, work) {
  for (let run = 0; run < Math.max(3, runs / 4); run++) work();
  const times = Array.from({ length: runs }, () => {
    const start = performance.now();
    work();
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b);
}

const random = (length) => crypto.getRandomValues(new Uint8Array(length));

/** Standard deviation of the errors of encryption: 3.19, and with a public key times the norm of the secrets. */
const SIGMA = 3.19;

/** This project's client: the parameters of a thin client, with the bits of its prime and its scale. */
export function ours({ Client, Encryptor }, { logN, bits, scale, fractionBits, parameters }, runs) {
  const client = new Client(parameters, random(32));
  const count = client.capacity;
  const one = 2 ** fractionBits;
  const numbers = Int32Array.from({ length: count }, (_, i) => ((7919 * i) % (2 * one + 1)) - one);
  const encryptor = new Encryptor(parameters, client.publicKey(), random(32));
  let sent = null;
  const check = (variance) => {
    const bound = ((9 * Math.sqrt(variance) + 0.5) * one) / scale + 0.5;
    const found = client.decrypt(sent);
    const worst = found.reduce((worst, number, i) => Math.max(worst, Math.abs(number - numbers[i])), 0);
    if (!(found.length === count && worst <= bound)) throw new Error(`off by ${worst}, the bound is ${bound}`);
  };
  const rows = [];
  const row = (work, times) =>
    rows.push({ library: "keywright", work, log_n: logN, bits, values: count, bytes: sent.length, times });
  const timed = (work, variance, encrypt) => {
    const times = measure(runs, () => (sent = encrypt()));
    check(variance);
    row(work, times);
  };
  const secret = SIGMA ** 2;
  timed("encrypt, secret key", secret, () => client.encryptCompact(numbers, 0));
  timed("encrypt, public key", secret * (1 + (4 / 3) * 2 ** logN), () => encryptor.encrypt(numbers));
  row("decrypt", measure(runs, () => client.decrypt(sent)));
  encryptor.free();
  client.free();
  return rows;
}

/**
 * SEAL's CKKS at the largest modulus of the ring with 128-bit security: encode and encrypt as usual, with all primes.
 */
export function theirs(seal, logN, runs) {
  const n = 2 ** logN;
  const parameters = seal.EncryptionParameters(seal.SchemeType.ckks);
  parameters.setPolyModulusDegree(n);
  const primes = seal.CoeffModulus.BFVDefault(n, seal.SecurityLevel.tc128);
  parameters.setCoeffModulus(primes);
  const context = seal.Context(parameters, true, seal.SecurityLevel.tc128);
  if (!context.parametersSet()) throw new Error("SEAL refuses its own parameters");
  const encoder = seal.CKKSEncoder(context);
  const generator = seal.KeyGenerator(context);
  const encryptor = seal.Encryptor(context, generator.createPublicKey(), generator.secretKey());
  const decryptor = seal.Decryptor(context, generator.secretKey());
  const values = Float64Array.from({ length: n / 2 }, (_, i) => ((7919 * i) % 2001) / 1000 - 1);
  const [plain, cipher] = [seal.PlainText(), seal.CipherText()];
  const rows = [];
  const timed = (work, encrypt) => {
    const times = measure(runs, () => {
      encoder.encode(values, 2 ** 40, plain);
      encrypt();
    });
    const found = encoder.decode(decryptor.decrypt(cipher));
    const worst = values.reduce((worst, value, i) => Math.max(worst, Math.abs(value - found[i])), 0);
    if (!(worst < 2 ** -20)) throw new Error(`SEAL's values are off by ${worst}`);
    const bytes = cipher.saveArray(seal.ComprModeType.none).length;
    const bits = primes.toArray().reduce((sum, prime) => sum + prime.toString(2).length, 0);
    rows.push({ library: "node-seal 6.0.3", work, log_n: logN, bits, values: values.length, bytes, times });
  };
  timed("encode and encrypt, public key", () => encryptor.encrypt(plain, cipher));
  timed("encode and encrypt, secret key", () => encryptor.encryptSymmetric(plain, cipher));
  return rows;
}
