// SPDX-License-Identifier: Apache-2.0
// Certificate files in a temporary folder, and server options and clients that use them.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { CertificateAuthority, createAuthority } from '../../src/certs/index.ts';
import { RpcClient } from './client.ts';

export interface TlsFiles {
  readonly folder: string;
  readonly authority: CertificateAuthority;
  readonly caPem: string;
  readonly caKeyPem: string;
  renewServer(name: string): Promise<void>;
}

const FROM = Date.now() - 3_600_000;
export const VALIDITY = { notBefore: FROM, notAfter: FROM + 86_400_000 };

export async function withTlsFiles(test: (files: TlsFiles) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'pvescaler-tls-'));
  const ca = createAuthority('test CA', VALIDITY);
  const authority = new CertificateAuthority(ca, VALIDITY);
  const renewServer = async (name: string) => {
    const server = authority.issueServer([name, '127.0.0.1']);
    await writeFile(join(folder, 'server.key'), server.keyPem);
    await writeFile(join(folder, 'server.crt'), server.certPem);
  };
  try {
    await writeFile(join(folder, 'ca.crt'), ca.certPem);
    await renewServer('first');
    await test({ folder, authority, caPem: ca.certPem, caKeyPem: ca.keyPem, renewServer });
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function tlsOptions({ folder }: TlsFiles, allow: readonly string[]) {
  return {
    serve: {
      insecure: false,
      expander: { listen: { host: '127.0.0.1', port: 0 } },
      tls: {
        certPath: join(folder, 'server.crt'),
        keyPath: join(folder, 'server.key'),
        clientCaPath: join(folder, 'ca.crt'),
        allow,
      },
      read: (path: string) => readFile(path, 'utf8'),
    },
  };
}

export function tlsClient(
  { caPem }: TlsFiles,
  port: number,
  pair?: { certPem: string; keyPem: string },
): RpcClient {
  const text = (pem: string | undefined) => (pem === undefined ? null : Buffer.from(pem));
  return new RpcClient(
    `127.0.0.1:${port}`,
    'c.proto',
    credentials.createSsl(Buffer.from(caPem), text(pair?.keyPem), text(pair?.certPem)),
  );
}
