// SPDX-License-Identifier: Apache-2.0

const NEWLINE = 10;

/** Lines of a stream, each as soon as it is complete. What comes after the last line break is cut off, not a line. */
export async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  let parts: Buffer[] = [];
  for await (const chunk of body) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const line =
        parts.length === 0 ? rest.subarray(0, end) : joined(parts, rest.subarray(0, end));
      parts = [];
      rest = rest.subarray(end + 1);
      if (line.length > 0) yield line.toString('utf8');
    }
    if (rest.length > 0) parts.push(rest);
  }
}

function joined(parts: readonly Buffer[], last: Buffer): Buffer {
  return Buffer.concat([...parts, last]);
}
