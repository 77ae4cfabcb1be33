// SPDX-License-Identifier: Apache-2.0
import type { SizedBody } from '../ports/transport.ts';

export interface FileUpload {
  /** Name and value of the fields, in the order in which they precede the file. */
  readonly fields: readonly (readonly [string, string])[];
  readonly fileName: string;
  readonly bytes: Uint8Array;
  readonly boundary: string;
}

/**
 * Encodes an upload for the parser of Proxmox: the fields first, the file last with the name `filename`, and in each part
 * Content-Disposition before all other headers. The length is known, because Proxmox refuses chunked bodies.
 */
export function encodeMultipart(upload: FileUpload): {
  readonly contentType: string;
  readonly body: SizedBody;
} {
  const encoder = new TextEncoder();
  const fields = upload.fields.map(
    ([name, value]) =>
      `--${upload.boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const fileHead =
    `--${upload.boundary}\r\n` +
    `Content-Disposition: form-data; name="filename"; filename="${upload.fileName}"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n';
  const head = encoder.encode(fields.join('') + fileHead);
  const tail = encoder.encode(`\r\n--${upload.boundary}--\r\n`);
  return {
    contentType: `multipart/form-data; boundary=${upload.boundary}`,
    body: {
      byteLength: head.length + upload.bytes.length + tail.length,
      async *open() {
        yield head;
        yield upload.bytes;
        yield tail;
      },
    },
  };
}
