// SPDX-License-Identifier: Apache-2.0
// ca-proxmox-externalgrpc: converts its YAML file and its variables to a config of mode externalgrpc.

import type { ImportContext } from '../context.ts';
import { formatSeconds } from '../output/amounts.ts';
import { type ScalarTree, SourceSection, type SourceTree } from '../source/tree.ts';
import { findEffectiveValue, findVariable } from './effective-value.ts';
import { mapK3s } from './k3s.ts';
import { mapNodeGroups } from './node-groups.ts';
import { mapDefaults, mapImage, mapProxmox } from './proxmox.ts';

const UNKNOWN = 'is an unknown key, which the source system ignores';

export function mapExternalgrpc(context: ImportContext, tree: SourceTree): void {
  const { writer, reader } = context;
  const root = new SourceSection('', tree);
  for (const key of ['proxmox', 'k3s', 'defaults']) reader.expectKind(root.find(key), 'map');
  const proxmox = root.section('proxmox');
  const k3s = root.section('k3s');
  const defaults = root.section('defaults');

  writer.setOwn(['mode'], 'externalgrpc', '');
  mapServer(context);
  mapProxmox(context, proxmox);
  mapDefaults(context, defaults);
  mapImage(context, proxmox);
  mapK3s(context, k3s);
  mapNodeGroups(context, root, {
    bridge: findEffectiveValue(context, proxmox, 'bridge'),
    bridgeWhere: { path: 'proxmox.bridge' },
    pendingSeconds: readSecondsVariable(context, {
      variable: 'PENDING_VM_TIMEOUT_SECONDS',
      floor: 120,
      fallback: 900,
    }),
  });
  for (const section of [root, proxmox, k3s, defaults])
    reader.noteUnreadKeys(section, 'ignored-by-source', UNKNOWN);
}

/** Settings that only exist as variables and flags. */
function mapServer(context: ImportContext): void {
  const { writer } = context;
  mapListener(context);
  writer.setFixedBehavior(['grpc', 'insecure'], true, 'gRPC is always plain');
  writer.note(
    { path: 'gRPC' },
    'imported-differently',
    'the source system serves without TLS, so every client that can reach the port can create and delete VMs; set grpc.tls with a client CA to prevent that',
  );
  const interval = readSecondsVariable(context, {
    variable: 'RECONCILE_INTERVAL_SECONDS',
    floor: 5,
    fallback: 20,
  });
  if (interval !== undefined)
    writer.set(['intervals', 'reconcile'], formatSeconds(interval.seconds), interval.where);
  mapLogLevel(context);
  noteDatabase(context);
  const config = findVariable(context, 'PROVIDER_CONFIG');
  if (config !== undefined)
    writer.note(config, 'not-imported', 'names the imported file; pass the new file with --config');
}

function mapListener(context: ImportContext): void {
  const host = findVariable(context, 'BIND_ADDRESS');
  const port = findVariable(context, 'PORT');
  const given = [host, port].flatMap((tree) => (tree === undefined ? [] : [tree.path]));
  if (given.length === 0) return;
  const address = String(host?.value ?? '0.0.0.0');
  const bracketed = address.includes(':') && !address.startsWith('[') ? `[${address}]` : address;
  context.writer.set(['grpc', 'listen'], `${bracketed}:${port?.value ?? 50051}`, {
    path: given.join(', '),
  });
}

const LEVELS: Readonly<Record<string, string>> = {
  DEBUG: 'debug',
  INFO: 'info',
  WARNING: 'warn',
  WARN: 'warn',
  ERROR: 'error',
  CRITICAL: 'error',
};

function mapLogLevel(context: ImportContext): void {
  const tree = findVariable(context, 'LOG_LEVEL');
  if (tree === undefined) return;
  const level = LEVELS[String(tree.value).toUpperCase()];
  if (level === undefined)
    context.writer.note(tree, 'not-imported', 'is not a log level of pvescaler');
  else context.writer.set(['log', 'level'], level, tree);
}

// pvescaler also reads this variable and would then open the database of the source system.
function noteDatabase(context: ImportContext): void {
  const tree = findVariable(context, 'PROVIDER_STATE_DB');
  if (tree === undefined) return;
  context.writer.note(
    tree,
    'action-required',
    'names the database of the source system, which pvescaler cannot use; state.path is a new file, so unset the variable where pvescaler runs',
  );
}

interface SecondsRule {
  readonly variable: string;
  readonly floor: number;
  readonly fallback: number;
}

/** Reads seconds with an undocumented minimum. The source system uses the default for text that is not a number. */
function readSecondsVariable(
  context: ImportContext,
  { variable, floor, fallback }: SecondsRule,
): { readonly seconds: number; readonly where: ScalarTree } | undefined {
  const tree = findVariable(context, variable);
  if (tree === undefined) return undefined;
  const text = String(tree.value);
  const given = /^[+-]?\d+$/.test(text) ? Number(text) : fallback;
  const effective = Math.max(given, floor);
  if (String(effective) !== text) {
    context.writer.note(
      tree,
      'imported-differently',
      `the source system uses ${effective} s for this value`,
    );
  }
  return { seconds: effective, where: tree };
}
