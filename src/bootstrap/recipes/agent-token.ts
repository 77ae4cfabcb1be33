// SPDX-License-Identifier: Apache-2.0
// The token file of a k3s or RKE2 agent that has joined. The agent refuses to start without a token, verifies the server's
// CA by the hash in it, and authenticates by its own certificate: the secret part is not needed any more.

import { quoteShell } from '../../model/quote-shell.ts';
import { joinLines, STATE_DIRECTORY, TOKEN_FILE } from '../guest-file.ts';

export const AGENT_TOKEN_SCRIPT = '/usr/local/sbin/pvescaler-agent-token';

/** Has the form of a bootstrap token, and names none. */
const NO_SECRET = 'none00.0000000000000000';

/** Keeps the hash of the CA. Written aside and renamed: after a power failure an empty file would stop the agent. */
export function renderTokenRemoval(): string {
  return joinLines(
    `token="$(cat ${TOKEN_FILE})"`,
    'case "$token" in',
    '  K10*::*) prefix="${token%%::*}::" ;;',
    '  *) prefix= ;;',
    'esac',
    ...writeToken('${prefix}'),
  );
}

function writeToken(prefix: string): string[] {
  return [
    `(umask 077; echo "${prefix}${NO_SECRET}" > ${TOKEN_FILE}.new)`,
    'sync',
    `mv -f ${TOKEN_FILE}.new ${TOKEN_FILE}`,
  ];
}

/** Shell functions on the certificates of `$work/ca`. */
const CA_FUNCTIONS = [
  'split() {',
  `  awk -v folder="$work" '/BEGIN CERTIFICATE/ { n += 1 } n { print > (folder "/" n ".pem") }' "$work/ca"`,
  '}',
  '',
  // Without the roots, so that the chain goes on to the known CA. It also signs certificates of nodes, which are no CAs.
  'is_signed_by_known() {',
  '  openssl x509 -in "$work/1.pem" -noout -ext basicConstraints | grep -q "CA:TRUE" || return 1',
  '  : > "$work/links"',
  '  i=1',
  '  while [ "$i" -le "$count" ]; do',
  '    subject="$(openssl x509 -in "$work/$i.pem" -noout -subject)"',
  '    issuer="$(openssl x509 -in "$work/$i.pem" -noout -issuer)"',
  '    if [ "${subject#*=}" != "${issuer#*=}" ]; then cat "$work/$i.pem" >> "$work/links"; fi',
  '    i=$((i + 1))',
  '  done',
  '  openssl verify -no-CApath -partial_chain -CAfile "$known" -untrusted "$work/links" "$work/1.pem" >/dev/null',
  '}',
  '',
  'root_of_first() {',
  // A root that signed the first certificate itself goes before one at the end of a longer chain.
  '  for chain in direct long; do',
  '    i=2',
  '    while [ "$i" -le "$count" ]; do',
  '      root="$work/$i.pem"',
  '      others="$root"',
  '      if [ "$chain" = long ]; then others="$work/ca"; fi',
  '      if openssl verify -no-CApath -CAfile "$root" -untrusted "$others" "$work/1.pem" >/dev/null 2>&1; then',
  '        openssl x509 -in "$root" -outform DER',
  '        return 0',
  '      fi',
  '      i=$((i + 1))',
  '    done',
  '  done',
  // The known CA says nothing about other bytes of the file.
  '  if [ "$is_verified" = false ]; then return 1; fi',
  '  cat "$work/ca"',
  '}',
  '',
];

/**
 * Runs before each start of an agent that has joined. After a rotation of the cluster's CA the hash in the token is wrong,
 * and the agent would never start again. The new CA is accepted from a server that the known CA verifies, or if the known
 * CA has signed it. The second is needed for a cross-signed CA: the server sends the new root too, at which OpenSSL ends
 * the chain, so that the known CA does not verify the server. The hash of several certificates is that of the root that the
 * first one chains to, as the agent computes it.
 */
export function renderAgentTokenScript({
  server,
  caFile,
}: {
  readonly server: string;
  /** The CA that the agent has stored. */
  readonly caFile: string;
}): string {
  return joinLines(
    '#!/bin/sh',
    "# Keeps the hash in the agent's token equal to that of the cluster's CA.",
    'set -eu',
    `known=${quoteShell(caFile)}`,
    `if [ ! -e ${STATE_DIRECTORY}/joined ] || [ ! -s "$known" ]; then exit 0; fi`,
    'command -v curl >/dev/null || exit 0',
    'work="$(mktemp -d)"',
    `trap 'rm -rf "$work"' EXIT`,
    'fetch() {',
    `  curl -fsS "$@" --connect-timeout 5 --max-time 10 -o "$work/ca" ${quoteShell(new URL('/cacerts', server).href)}`,
    '}',
    'is_verified=true',
    'if ! fetch --cacert "$known"; then',
    '  command -v openssl >/dev/null || exit 0',
    '  is_verified=false',
    '  fetch --insecure',
    'fi',
    `token="$(cat ${TOKEN_FILE})"`,
    'case "$token" in',
    '  K10*) if cmp -s "$known" "$work/ca"; then exit 0; fi ;;',
    'esac',
    'count="$(grep -c "BEGIN CERTIFICATE" "$work/ca")"',
    '',
    ...CA_FUNCTIONS,
    'if [ "$is_verified" = false ]; then',
    '  split',
    '  is_signed_by_known',
    'fi',
    'if [ "$count" -gt 1 ]; then',
    '  command -v openssl >/dev/null || exit 0',
    '  split',
    '  root_of_first > "$work/hashed"',
    'else',
    '  cp "$work/ca" "$work/hashed"',
    'fi',
    'sum="$(sha256sum < "$work/hashed")"',
    'hash="${sum%% *}"',
    'if [ "${token%%::*}" = "K10$hash" ]; then exit 0; fi',
    ...writeToken('K10${hash}::'),
  );
}
