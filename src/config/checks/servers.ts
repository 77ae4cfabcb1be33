// SPDX-License-Identifier: Apache-2.0
// Listeners and state: access to the servers, and state that survives a restart.
import { stateFolderProblem } from '../../model/state-path.ts';
import type { ConfigPath } from '../config-path.ts';
import { errorAt, errorAtKey, type Finding, warningAt } from '../issues/finding.ts';
import type { ConfigFile } from '../schema/index.ts';
import { isLoopback, type ListenAddress, parseListenAddress } from '../values/listen-address.ts';
import type { CheckContext } from './check-context.ts';

export function checkServers(file: ConfigFile, scope: CheckContext): readonly Finding[] {
  const { path, kubernetes } = file.state;
  const volatile =
    kubernetes === undefined
      ? stateFolderProblem(scope.folders.resolve(path), scope.folders.temp)
      : undefined;
  return [
    ...checkGrpc(file),
    ...checkDashboard(file),
    ...checkPorts(file),
    ...(volatile === undefined ? [] : [warningAt(['state', 'path'], volatile)]),
  ];
}

function checkGrpc({ mode, grpc }: ConfigFile): readonly Finding[] {
  const findings: Finding[] = [];
  if (mode === 'externalgrpc' && grpc.tls === undefined && !grpc.insecure) {
    findings.push(
      errorAt(
        ['grpc'],
        "mode externalgrpc needs 'tls' (cert, key, clientCa), or 'insecure: true', with which every client that can reach the port can create and delete VMs",
      ),
    );
  }
  if (grpc.insecure && grpc.tls !== undefined) {
    findings.push(
      errorAtKey(['grpc', 'insecure'], "cannot be combined with 'tls'; keep only one of them"),
    );
  } else if (grpc.insecure && mode === 'externalgrpc') {
    findings.push(
      warningAt(
        ['grpc', 'insecure'],
        'every client that can reach the port can create and delete VMs; configure tls',
      ),
    );
  }
  if (grpc.tls !== undefined && grpc.tls.allow.length === 0) {
    findings.push(
      warningAt(['grpc', 'tls', 'allow'], 'the list is empty, so every client is rejected'),
    );
  }
  return findings;
}

function checkDashboard({ http }: ConfigFile): readonly Finding[] {
  const parsed = parseListenAddress(http.dashboard);
  if (!parsed.ok || isLoopback(parsed.value)) return [];
  return [
    warningAt(
      ['http', 'dashboard'],
      'the dashboard has no authentication and is reachable from other machines; listen on 127.0.0.1 or put an authenticating proxy in front',
    ),
  ];
}

function checkPorts({ mode, grpc, http }: ConfigFile): readonly Finding[] {
  const listeners: readonly (readonly [ConfigPath, string | undefined])[] = [
    [['http', 'health'], http.health],
    [['http', 'dashboard'], http.dashboard],
    [['grpc', 'listen'], mode === 'externalgrpc' ? grpc.listen : undefined],
    [['grpc', 'expander', 'listen'], grpc.expander?.listen],
  ];
  const open = listeners.flatMap(([path, text]) => {
    const parsed = text === undefined ? undefined : parseListenAddress(text);
    return parsed?.ok === true ? [{ path, address: parsed.value }] : [];
  });
  return open.flatMap(({ path, address }, index) =>
    open
      .slice(0, index)
      .filter((other) => listenersConflict(other.address, address))
      .map((other) => errorAt(path, `uses the same address and port as ${other.path.join('.')}`)),
  );
}

function listenersConflict(left: ListenAddress, right: ListenAddress): boolean {
  const isAny = (host: string) => host === '' || host === '0.0.0.0' || host === '::';
  return (
    left.port === right.port &&
    left.port !== 0 &&
    (left.host === right.host || isAny(left.host) || isAny(right.host))
  );
}
