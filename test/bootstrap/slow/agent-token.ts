// SPDX-License-Identifier: Apache-2.0
// Runs the script that keeps the hash in an agent's token with dash, awk and OpenSSL, for the bundles of CAs whose hashes
// are known. Only curl is replaced, by a program that copies the bundle.
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { renderSeed } from '../../../src/bootstrap/index.ts';
import { aSeedInput, unwrap } from '../../../src/bootstrap/testing/a-seed.ts';
import { createAuthority } from '../../e2e/controlplane/certificate-authority.ts';
import type { Tally } from './tally.ts';
import { run } from './tools.ts';

interface CaBundle {
  readonly name: string;
  readonly pem: string;
  readonly hash: string;
}

/** OpenSSL does not end a chain at a certificate that is not self-signed, as k3s does here. */
const NOT_SUPPORTED = new Set(['an intermediate without key identifier of its authority']);
const NO_SECRET = 'none00.0000000000000000';

export function checkAgentToken(folder: string, tally: Tally): number {
  const path = join(import.meta.dirname, '..', 'fixtures', 'ca-bundles.json');
  const bundles: readonly CaBundle[] = JSON.parse(readFileSync(path, 'utf8'));
  const supported = bundles.filter(({ name }) => !NOT_SUPPORTED.has(name));
  for (const { name, pem, hash } of supported) {
    for (const before of [`K10${'0'.repeat(64)}::${NO_SECRET}`, NO_SECRET]) {
      const { token, text } = runScript(join(folder, 'agent-token'), { pem, known: 'old', before });
      const isRight = token === `K10${hash}::${NO_SECRET}\n`;
      tally.check(`hash of ${name} in the agent's token`, isRight, () => `${token}\n${text}`);
    }
    const before = `K10${'0'.repeat(64)}::${NO_SECRET}\n`;
    const { token } = runScript(join(folder, 'agent-token'), { pem, known: pem, before });
    tally.check(`the token stays while ${name} is unchanged`, token === before, () => token);
  }
  checkCrossSignedCa(join(folder, 'agent-token'), supported, tally);
  checkCertificateOfNode(join(folder, 'agent-token'), tally);
  return supported.length;
}

/**
 * The chain of a server with a cross-signed CA also contains the new root, at which OpenSSL ends it: curl refuses the
 * connection although the known CA has signed the new one.
 */
function checkCrossSignedCa(folder: string, bundles: readonly CaBundle[], tally: Tally): void {
  const pemOf = (name: string) => bundles.find((bundle) => bundle.name === name)?.pem ?? '';
  const rotated = bundles.find(({ name }) => name === 'a rotated CA with a cross-signed root');
  const { pem = '', hash = '' } = rotated ?? {};
  const before = `K10${'0'.repeat(64)}::${NO_SECRET}\n`;
  const old = pem.slice(pem.lastIndexOf('-----BEGIN CERTIFICATE-----'));
  const renewed = runScript(folder, { pem, known: old, before, isRefused: true });
  tally.check(
    'the token follows a cross-signed CA',
    renewed.token === `K10${hash}::${NO_SECRET}\n`,
    () => `${renewed.token}\n${renewed.text}`,
  );
  for (const name of ['the default CA', 'two CAs that do not chain']) {
    const others = runScript(folder, { pem: pemOf(name), known: old, before, isRefused: true });
    tally.check(
      `the token stays when the known CA has not signed ${name}`,
      others.token === before,
      () => others.token,
    );
  }
}

/** A node with a certificate of the cluster must not become the CA of another one. */
function checkCertificateOfNode(folder: string, tally: Tally): void {
  const authority = createAuthority('kubernetes');
  const before = `K10${'0'.repeat(64)}::${NO_SECRET}\n`;
  const { certPem } = authority.server();
  for (const pem of [certPem, certPem + authority.certPem]) {
    const { token } = runScript(folder, { pem, known: authority.certPem, before, isRefused: true });
    tally.check('the token stays when a node sends its certificate', token === before, () => token);
  }
}

interface Files {
  readonly pem: string;
  readonly known: string;
  readonly before: string;
  /** Whether the known CA does not verify the server. */
  readonly isRefused?: boolean;
}

function runScript(root: string, { pem, known, before, isRefused = false }: Files) {
  const ca = '/var/lib/rancher/k3s/agent/server-ca.crt';
  const token = '/var/lib/pvescaler/join-token';
  const files = {
    '/served': pem,
    [ca]: known,
    [token]: before,
    '/var/lib/pvescaler/joined': '',
    '/bin/curl': `#!/bin/sh\n${isRefused ? 'case "$*" in *--cacert*) exit 60 ;; esac\n' : ''}while [ "$1" != -o ]; do shift; done\ncp ${root}/served "$2"\n`,
    '/script': renderedScript().replaceAll('/var/lib', `${root}/var/lib`),
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  chmodSync(join(root, '/bin/curl'), 0o755);
  const { text } = run('/bin/dash', [join(root, '/script')], {
    PATH: `${root}/bin:${process.env['PATH'] ?? ''}`,
  });
  const after = readFileSync(join(root, token), 'utf8');
  rmSync(root, { recursive: true });
  return { token: after, text };
}

function renderedScript(): string {
  const { write_files: files } = parse(unwrap(renderSeed(aSeedInput())).userData) as {
    readonly write_files: readonly { readonly path: string; readonly content: string }[];
  };
  return files.find(({ path }) => path.endsWith('/pvescaler-agent-token'))?.content ?? '';
}
