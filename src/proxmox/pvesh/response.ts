// SPDX-License-Identifier: Apache-2.0
// Turns what pvesh prints into the response of the REST API, so that everything above reads one format.
import { InvalidConfig, Unauthorized, Unreachable } from '../../ports/errors.ts';
import type { RemoteResult } from '../../ports/remote-shell.ts';
import type { TransportResponse } from '../../ports/transport.ts';
import { parseJson } from '../wire-values.ts';
import type { PveshCall } from './command.ts';

const COMMAND_NOT_FOUND = 127;

/** Lines that pvesh prints on standard error although it goes on. */
const NOISE =
  /^(trying to acquire lock\.\.\.|\s*OK|perl: warning:.*|\s+LC_.*|\s+LANG.*|\s*are supported and installed.*)$/;

export function toResponse(
  call: PveshCall,
  address: string,
  result: RemoteResult,
): TransportResponse {
  const { exitCode, output, errorOutput } = result;
  if (exitCode === 0) return respond(200, 'OK', { data: readData(call, output) });
  const lines = errorOutput.split('\n').filter((line) => !NOISE.test(line));
  const text = lines.join('\n').trim();
  if (exitCode === undefined) {
    throw new Unreachable('PVE_HOST_UNREACHABLE', `${address}: a signal ended pvesh`);
  }
  if (exitCode === COMMAND_NOT_FOUND) throw notProxmox(address, text);
  if (/please run as root/.test(text)) throw notRoot(address);
  return toErrorResponse(text === '' ? `pvesh ended with exit code ${exitCode}` : text);
}

/**
 * A task prints its log before the result, which is the last line. A change of a configuration has no result, and prints
 * texts of the user.
 */
function readData({ method, path }: PveshCall, output: string): unknown {
  if (method === 'GET') return parseJson(output);
  if (method === 'PUT' && path.endsWith('/config')) return null;
  return (
    parseJson(output.trimEnd()) ?? parseJson(output.trimEnd().split('\n').at(-1) ?? '') ?? null
  );
}

/** `400 Parameter verification failed.`, then `name: text` lines and the usage; or the bare text of the API. */
function toErrorResponse(text: string): TransportResponse {
  const [first = '', ...rest] = text.split('\n');
  const [, status, reason = ''] = /^([45]\d\d) (.*)$/.exec(first) ?? [];
  if (status === undefined) return respond(500, first, { data: null, message: text });
  const errors: Record<string, string> = {};
  for (const line of rest) {
    const [, name, message = ''] = /^([\w-]+): (.*)$/.exec(line) ?? [];
    if (name !== undefined) errors[name] = message;
  }
  return respond(Number(status), reason, { data: null, message: reason, errors });
}

export function respond(status: number, reason: string, body: unknown): TransportResponse {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  return {
    status,
    reason,
    headers: {},
    body: (async function* () {
      yield bytes;
    })(),
  };
}

function notProxmox(address: string, text: string): InvalidConfig {
  return new InvalidConfig('CONFIG_INVALID', `${address} is not a Proxmox VE host: ${text}`, {
    hint: 'Set transport.ssh.hosts to the Proxmox VE hosts of the region.',
    facts: { requestSent: false },
  });
}

function notRoot(address: string): Unauthorized {
  return new Unauthorized('SSH_LOGIN_REFUSED', `${address}: pvesh and qm must run as root`, {
    hint: 'Set transport.ssh.user to root, or use an API token with transport: rest.',
    facts: { requestSent: false },
  });
}
