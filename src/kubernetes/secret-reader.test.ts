// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../ports/errors.ts';
import { type ScriptedPeer, ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { ApiClient } from './api-client.ts';
import { SecretReader } from './secret-reader.ts';

const REF = { namespace: 'pvescaler', name: 'pve', key: 'secret' };

function secretWith(data: Readonly<Record<string, string>>): ScriptedPeer {
  const encoded = Object.entries(data).map(([key, value]) => [
    key,
    Buffer.from(value).toString('base64'),
  ]);
  const body = JSON.stringify({ kind: 'Secret', data: Object.fromEntries(encoded) });
  return () => ({ status: 200, body });
}

function refusal(code: number, message: string): ScriptedPeer {
  return () => ({ status: code, body: JSON.stringify({ kind: 'Status', code, message }) });
}

function aReader(peer: ScriptedPeer) {
  const clock = new VirtualClock();
  const transport = new ScriptedTransport(peer, { clock });
  const server = 'https://api.example';
  const api = new ApiClient({ transport, server, clock, requestTimeoutMs: 1_000 });
  return { clock, transport, reader: new SecretReader((work) => work(api), clock) };
}

describe('SecretReader', () => {
  it('reads one key of the named Secret, and nothing else', async () => {
    const { reader, transport } = aReader(secretWith({ secret: 'höchst geheim\n' }));
    expect(await reader.read(REF)).toBe('höchst geheim\n');
    expect(transport.requests.map(({ method, url }) => `${method} ${url.pathname}`)).toEqual([
      'GET /api/v1/namespaces/pvescaler/secrets/pve',
    ]);
  });

  it('reads a rotated Secret after half a minute, and not for every use', async () => {
    const { reader, transport, clock } = aReader(secretWith({ secret: 'old' }));
    await Promise.all([reader.read(REF), reader.read({ ...REF, key: 'secret' })]);
    transport.respondWith(secretWith({ secret: 'new' }));
    expect(await reader.read(REF)).toBe('old');
    expect(transport.requests).toHaveLength(1);
    await clock.advance(30_000);
    expect(await reader.read(REF)).toBe('new');
  });

  it('keeps the last value while the API server cannot be reached, but needs a first one', async () => {
    const unreachable = () => {
      throw new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
    };
    const { reader, transport, clock } = aReader(unreachable);
    await expect(reader.read(REF)).rejects.toMatchObject({ code: 'KUBERNETES_UNREACHABLE' });
    transport.respondWith(secretWith({ secret: 'value' }));
    await reader.read(REF);
    transport.respondWith(unreachable);
    await clock.advance(60_000);
    expect(await reader.read(REF)).toBe('value');
    transport.respondWith(refusal(404, 'secrets "pve" not found'));
    await clock.advance(60_000);
    await expect(reader.read(REF)).rejects.toMatchObject({ code: 'SECRET_UNREADABLE' });
  });

  it.each([
    [
      secretWith({ id: 'x', token: 'y' }),
      'Secret pvescaler/pve has no key secret; it has id, token',
      '',
    ],
    [secretWith({}), 'Secret pvescaler/pve has no key secret; it has no keys', ''],
    [
      refusal(404, 'secrets "pve" not found'),
      'Secret pvescaler/pve does not exist',
      'kubectl -n pvescaler create secret generic pve --from-file=secret=FILE',
    ],
    [
      refusal(403, 'secrets "pve" is forbidden'),
      'Secret pvescaler/pve may not be read by this account: read Secret pvescaler/pve: secrets "pve" is forbidden',
      'Grant get on secrets with resourceNames [pve] in namespace pvescaler',
    ],
  ])('explains why a value cannot be read (%#)', async (peer, message, hint) => {
    const { reader } = aReader(peer);
    await expect(reader.read(REF)).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
      message,
      hint: expect.stringContaining(hint) as unknown,
    });
  });
});
