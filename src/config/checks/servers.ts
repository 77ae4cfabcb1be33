// SPDX-License-Identifier: Apache-2.0
// Listeners and state: who can reach what, and what survives a restart.
import { stateFolderProblem } from '../../model/state-path.ts';
import type { ConfigPath } from '../config-path.ts';
import { doubtful, type Finding, wrong, wrongKey } from '../issues/finding.ts';
import type { ConfigFile } from '../schema/index.ts';
import { isLoopback, type ListenAddress, parseListenAddress } from '../values/listen-address.ts';
import type { CheckScope } from './scope.ts';

export function checkServers(file: ConfigFile, scope: CheckScope): readonly Finding[] {
  const volatile = stateFolderProblem(scope.folders.resolve(file.state.path), scope.folders.temp);
  return [
    ...checkGrpc(file),
    ...checkDashboard(file),
    ...checkPorts(file),
    ...(volatile === undefined ? [] : [doubtful(['state', 'path'], volatile)]),
  ];
}

function checkGrpc({ mode, grpc }: ConfigFile): readonly Finding[] {
  const findings: Finding[] = [];
  if (mode === 'externalgrpc' && grpc.tls === undefined && !grpc.insecure) {
    findings.push(
      wrong(
        ['grpc'],
        "mode externalgrpc needs 'tls' (cert, key, clientCa), or 'insecure: true' to let anybody who reaches the port create and delete VMs",
      ),
    );
  }
  if (grpc.insecure && grpc.tls !== undefined) {
    findings.push(wrongKey(['grpc', 'insecure'], "cannot stand beside 'tls'; keep one of them"));
  } else if (grpc.insecure && mode === 'externalgrpc') {
    findings.push(
      doubtful(['grpc', 'insecure'], 'whoever reaches the port can create and delete VMs'),
    );
  }
  if (grpc.tls !== undefined && grpc.tls.allow.length === 0) {
    findings.push(doubtful(['grpc', 'tls', 'allow'], 'the list is empty: no client is let in'));
  }
  return findings;
}

function checkDashboard({ http }: ConfigFile): readonly Finding[] {
  const parsed = parseListenAddress(http.dashboard);
  if (!parsed.ok || isLoopback(parsed.value)) return [];
  return [
    doubtful(
      ['http', 'dashboard'],
      'the dashboard asks for no password and is open to other machines here; listen on 127.0.0.1 or put a proxy in front',
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
      .filter((other) => collide(other.address, address))
      .map((other) => wrong(path, `has the same address and port as ${other.path.join('.')}`)),
  );
}

function collide(left: ListenAddress, right: ListenAddress): boolean {
  const isAny = (host: string) => host === '' || host === '0.0.0.0' || host === '::';
  return (
    left.port === right.port &&
    left.port !== 0 &&
    (left.host === right.host || isAny(left.host) || isAny(right.host))
  );
}
