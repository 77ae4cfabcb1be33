// SPDX-License-Identifier: Apache-2.0
import { X509Certificate } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { pvescaler, root } from '../support/pvescaler.ts';

describe('pvescaler certs', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pvescaler-certs-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('makes a CA and two pairs, prints the cloud-config, and renews with the same CA', () => {
    const cert = (name: string) => new X509Certificate(readFileSync(join(folder, `${name}.crt`)));
    const args = ['certs', '-o', folder, '--name', 'scaler.example', '10.0.0.5'];
    const first = pvescaler(args);
    expect(first.exitCode).toBe(0);
    expect(first.out).toContain('address: "scaler.example:50051"');
    const manifest = readFileSync(
      join(root, 'deploy/cluster-autoscaler/cloud-config.yaml'),
      'utf8',
    );
    for (const line of first.out.trim().split('\n').slice(1)) expect(manifest).toContain(line);
    const ca = cert('ca');
    expect(cert('server').checkIssued(ca)).toBe(true);
    expect(cert('server').checkIP('10.0.0.5')).toBe('10.0.0.5');
    expect(cert('client').subject).toBe('CN=cluster-autoscaler');
    const before = cert('server').fingerprint256;
    expect(pvescaler(args).exitCode).toBe(2);
    expect(cert('server').fingerprint256).toBe(before);
    chmodSync(join(folder, 'server.key'), 0o644);
    expect(pvescaler([...args, '--force']).exitCode).toBe(0);
    expect(statSync(join(folder, 'server.key')).mode & 0o777).toBe(0o600);
    expect(cert('server').fingerprint256).not.toBe(before);
    expect(cert('server').checkIssued(ca)).toBe(true);
    expect(cert('ca').fingerprint256).toBe(ca.fingerprint256);
  });
});
