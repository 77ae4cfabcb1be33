// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../ports/fakes/scripted-transport.ts';
import { checkRequest } from './check-request.ts';

function sent(
  line: string,
  body = '',
  type = 'application/x-www-form-urlencoded',
): RecordedRequest {
  const [method = 'GET', path = ''] = line.split(' ');
  return {
    method: method as RecordedRequest['method'],
    url: new URL(`https://pve1:8006/api2/json${path}`),
    headers: body === '' ? {} : { 'content-type': type },
    bytes: new TextEncoder().encode(body),
    text: body,
    signal: new AbortController().signal,
  };
}

describe('checkRequest', () => {
  it('returns the endpoint and the parameters, numbered ones with [n]', () => {
    const form =
      'vmid=100&net3=virtio%2Cbridge%3Dvmbr0&scsi0=a1%3A0%2Cimport-from%3Db1%3Aimport%2Fx.raw';
    expect(checkRequest(sent('POST /nodes/pve1/qemu', form))).toEqual({
      endpoint: 'POST /nodes/{node}/qemu',
      parameters: ['net[n]', 'node', 'scsi[n]', 'vmid'],
    });
    const path = '/nodes/pve1/storage/local/content/local%3Aiso%2Fx.iso';
    expect(checkRequest(sent(`DELETE ${path}`)).parameters).toEqual(['node', 'storage', 'volume']);
  });

  it.each([
    ['an unknown endpoint', 'POST /nodes/pve1/vm', '', 'has no endpoint POST /nodes/pve1/vm'],
    ['an unknown parameter', 'POST /nodes/pve1/qemu', 'vmid=100&cpus=1', 'not defined'],
    ['a missing parameter', 'POST /nodes/pve1/qemu', 'cores=1', 'vmid'],
    ['a boolean that is not 0 or 1', 'DELETE /nodes/pve1/qemu/100?purge=true', '', "('boolean')"],
    ['a number out of range', 'POST /nodes/pve1/qemu', 'vmid=99', 'valid VM ID'],
    ['an unknown sub-key', 'POST /nodes/pve1/qemu', 'vmid=100&net0=virtio%2Cmac%3Dx', 'net0.mac'],
    ['an index out of range', 'POST /nodes/pve1/qemu', 'vmid=100&scsi31=a1%3A1', 'scsi31'],
    ['a value that is not encoded', 'POST /nodes/pve1/qemu', 'vmid=100&boot=order=net0', 'boot'],
    ['a parameter without a test case', 'GET /cluster/nextid?vmid=100', '', 'no test case'],
  ])('throws for %s', (...row) => {
    const [, line, body, text] = row;
    expect(() => checkRequest(sent(line, body))).toThrow(text);
  });

  it('parses uploads', () => {
    const part = (rest: string) => `--b\r\nContent-Disposition: form-data; ${rest}\r\n`;
    const upload = (content: string) =>
      sent(
        'POST /nodes/pve1/storage/local/upload',
        `${part(`name="content"\r\n\r\n${content}`)}${part('name="filename"; filename="a.iso"\r\n\r\nx')}--b--`,
        'multipart/form-data; boundary=b',
      );
    expect(checkRequest(upload('iso')).parameters).toEqual([
      'content',
      'filename',
      'node',
      'storage',
    ]);
    expect(() => checkRequest(upload('snippets'))).toThrow('enumeration');
  });
});
