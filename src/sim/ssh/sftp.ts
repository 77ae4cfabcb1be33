// SPDX-License-Identifier: Apache-2.0
// The server side of SFTP: writing and removing files.
import ssh2, { type SFTPWrapper } from 'ssh2';

export interface RemoteFiles {
  /** `mode` in octal digits. Throws if the folder does not exist. */
  write(path: string, bytes: Uint8Array, mode: string): void;
  /** False if there is no such file. */
  remove(path: string): boolean;
}

interface OpenFile {
  readonly path: string;
  readonly mode: string;
  bytes: Buffer;
}

const { STATUS_CODE, OPEN_MODE } = ssh2.utils.sftp;

export function serveSftp(sftp: SFTPWrapper, files: RemoteFiles): void {
  const open = new Map<number, OpenFile>();
  let nextHandle = 0;
  const fileOf = (handle: Buffer) => open.get(handle.readUInt32BE(0));
  // oxlint-disable-next-line max-params -- the order of the library
  sftp.on('OPEN', (request, path, flags, attributes) => {
    if ((flags & OPEN_MODE.WRITE) === 0) return sftp.status(request, STATUS_CODE.OP_UNSUPPORTED);
    const handle = Buffer.alloc(4);
    handle.writeUInt32BE(nextHandle, 0);
    // The type declares a mode always; clients may leave it out.
    const mode = Number.isInteger(attributes.mode) ? attributes.mode & 0o777 : 0o644;
    open.set(nextHandle, { path, mode: mode.toString(8).padStart(4, '0'), bytes: Buffer.alloc(0) });
    nextHandle += 1;
    sftp.handle(request, handle);
  });
  // oxlint-disable-next-line max-params -- the order of the library
  sftp.on('WRITE', (request, handle, offset, data) => {
    const file = fileOf(handle);
    if (file === undefined) return sftp.status(request, STATUS_CODE.FAILURE);
    const size = Math.max(file.bytes.length, offset + data.length);
    if (size > file.bytes.length) file.bytes = Buffer.concat([file.bytes], size);
    data.copy(file.bytes, offset);
    sftp.status(request, STATUS_CODE.OK);
  });
  const acknowledge = (request: number) => sftp.status(request, STATUS_CODE.OK);
  sftp.on('FSETSTAT', acknowledge);
  sftp.on('CLOSE', (request, handle) => {
    const file = fileOf(handle);
    if (file === undefined) return sftp.status(request, STATUS_CODE.FAILURE);
    open.delete(handle.readUInt32BE(0));
    try {
      files.write(file.path, file.bytes, file.mode);
      sftp.status(request, STATUS_CODE.OK);
    } catch {
      sftp.status(request, STATUS_CODE.NO_SUCH_FILE);
    }
  });
  sftp.on('REMOVE', (request, path) => {
    sftp.status(request, files.remove(path) ? STATUS_CODE.OK : STATUS_CODE.NO_SUCH_FILE);
  });
}
