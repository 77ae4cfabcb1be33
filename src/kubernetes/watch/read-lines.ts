// SPDX-License-Identifier: Apache-2.0

const NEWLINE = 10;

/** Yields each line of a stream as soon as it is complete. Text after the last line break is truncated, not a line. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  let parts: Buffer[] = [];
  for await (const chunk of body) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const head = rest.subarray(0, end);
      const line = parts.length === 0 ? head : Buffer.concat([...parts, head]);
      parts = [];
      rest = rest.subarray(end + 1);
      if (line.length > 0) yield line.toString('utf8');
    }
    if (rest.length > 0) parts.push(rest);
  }
}
