// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) for `sha256sum` in the guests. Independent of node:crypto, so that the simulated shell needs
// no Node API other than zlib. Only for the simulator.

const PRIMES = firstPrimes(64);
const ROUND_CONSTANTS = Uint32Array.from(PRIMES, (prime) => fractionBits(Math.cbrt(prime)));
const INITIAL_HASH = Uint32Array.from(PRIMES.slice(0, 8), (prime) =>
  fractionBits(Math.sqrt(prime)),
);

export function sha256Hex(bytes: Uint8Array): string {
  const hash = Uint32Array.from(INITIAL_HASH);
  const message = new DataView(padMessage(bytes).buffer);
  for (let offset = 0; offset < message.byteLength; offset += 64)
    compressBlock(hash, message, offset);
  return Array.from(hash, (word) => word.toString(16).padStart(8, '0')).join('');
}

function compressBlock(hash: Uint32Array, message: DataView, offset: number): void {
  const words = messageSchedule(message, offset);
  let state = Uint32Array.from(hash);
  for (const [index, word] of words.entries())
    state = compressionRound(state, word + (ROUND_CONSTANTS[index] ?? 0));
  for (const [index, value] of state.entries()) hash[index] = (hash[index] ?? 0) + value;
}

function compressionRound(state: Uint32Array, added: number): Uint32Array<ArrayBuffer> {
  const at = (index: number) => state[index] ?? 0;
  const s1 = rotateRight(at(4), 6) ^ rotateRight(at(4), 11) ^ rotateRight(at(4), 25);
  const choice = (at(4) & at(5)) ^ (~at(4) & at(6));
  const t1 = at(7) + s1 + choice + added;
  const s0 = rotateRight(at(0), 2) ^ rotateRight(at(0), 13) ^ rotateRight(at(0), 22);
  const majority = (at(0) & at(1)) ^ (at(0) & at(2)) ^ (at(1) & at(2));
  return Uint32Array.of(t1 + s0 + majority, at(0), at(1), at(2), at(3) + t1, at(4), at(5), at(6));
}

function messageSchedule(message: DataView, offset: number): Uint32Array {
  const words = new Uint32Array(64);
  for (let index = 0; index < 16; index += 1) words[index] = message.getUint32(offset + index * 4);
  for (let index = 16; index < 64; index += 1) {
    const far = words[index - 15] ?? 0;
    const near = words[index - 2] ?? 0;
    const s0 = rotateRight(far, 7) ^ rotateRight(far, 18) ^ (far >>> 3);
    const s1 = rotateRight(near, 17) ^ rotateRight(near, 19) ^ (near >>> 10);
    words[index] = (words[index - 16] ?? 0) + s0 + (words[index - 7] ?? 0) + s1;
  }
  return words;
}

function padMessage(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  message.set(bytes);
  message[bytes.length] = 0x80;
  const view = new DataView(message.buffer);
  view.setUint32(message.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(message.length - 4, (bytes.length * 8) >>> 0);
  return message;
}

function rotateRight(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

function fractionBits(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32);
}

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate += 1) {
    if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);
  }
  return primes;
}
