// SPDX-License-Identifier: Apache-2.0
// ca-proxmox-externalgrpc: its YAML file and its variables, as our config of mode externalgrpc.

import type { Context } from '../context.ts';
import { fromSeconds } from '../ours/units.ts';
import { type ScalarTree, Section, type Tree } from '../source/tree.ts';
import { mapK3s } from './k3s.ts';
import { mapNodeGroups } from './node-groups.ts';
import { fromEnvironment, pick } from './pick.ts';
import { mapDefaults, mapImage, mapProxmox } from './proxmox.ts';

const UNKNOWN = 'is unknown there, and ignored';

export function mapExternalgrpc(context: Context, tree: Tree): void {
  const { work, read } = context;
  const root = new Section('', tree);
  for (const key of ['proxmox', 'k3s', 'defaults']) read.expect(root.find(key), 'map');
  const proxmox = root.section('proxmox');
  const k3s = root.section('k3s');
  const defaults = root.section('defaults');

  work.carryOwn(['mode'], 'externalgrpc', '');
  mapServer(context);
  mapProxmox(context, proxmox);
  mapDefaults(context, defaults);
  mapImage(context, proxmox);
  mapK3s(context, k3s);
  mapNodeGroups(context, root, {
    bridge: pick(context, proxmox, 'bridge'),
    bridgeWhere: { path: 'proxmox.bridge' },
    pendingSeconds: seconds(context, {
      variable: 'PENDING_VM_TIMEOUT_SECONDS',
      floor: 120,
      otherwise: 900,
    }),
  });
  for (const section of [root, proxmox, k3s, defaults])
    read.unknown(section, 'ignored-by-them', UNKNOWN);
}

/** What only variables and flags say. */
function mapServer(context: Context): void {
  const { work } = context;
  mapListener(context);
  work.carryFixed(['grpc', 'insecure'], true, 'gRPC is always plain');
  work.note(
    { path: 'gRPC' },
    'carried-differently',
    'has no TLS there, so whoever reaches the port can create and delete VMs; grpc.tls with a client CA ends that',
  );
  const interval = seconds(context, {
    variable: 'RECONCILE_INTERVAL_SECONDS',
    floor: 5,
    otherwise: 20,
  });
  if (interval !== undefined)
    work.carry(['intervals', 'reconcile'], fromSeconds(interval.seconds), interval.where);
  mapLogLevel(context);
  noteDatabase(context);
  const config = fromEnvironment(context, 'PROVIDER_CONFIG');
  if (config !== undefined)
    work.note(
      config,
      'not-carried',
      'names the file that is imported here; ours is given by --config',
    );
}

function mapListener(context: Context): void {
  const host = fromEnvironment(context, 'BIND_ADDRESS');
  const port = fromEnvironment(context, 'PORT');
  const given = [host, port].flatMap((tree) => (tree === undefined ? [] : [tree.path]));
  if (given.length === 0) return;
  const address = String(host?.value ?? '0.0.0.0');
  const bracketed = address.includes(':') && !address.startsWith('[') ? `[${address}]` : address;
  context.work.carry(['grpc', 'listen'], `${bracketed}:${port?.value ?? 50051}`, {
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

function mapLogLevel(context: Context): void {
  const tree = fromEnvironment(context, 'LOG_LEVEL');
  if (tree === undefined) return;
  const level = LEVELS[String(tree.value).toUpperCase()];
  if (level === undefined)
    context.work.note(tree, 'not-carried', 'is not a level that is known here');
  else context.work.carry(['log', 'level'], level, tree);
}

// Our program understands the variable too, and would then open the other system's database.
function noteDatabase(context: Context): void {
  const tree = fromEnvironment(context, 'PROVIDER_STATE_DB');
  if (tree === undefined) return;
  context.work.note(
    tree,
    'needs-you',
    'names the database of the other system, which is of no use here: state.path is a new file; unset the variable where pvescaler runs',
  );
}

interface SecondsRule {
  readonly variable: string;
  readonly floor: number;
  readonly otherwise: number;
}

/** A number of seconds with an undocumented floor; what is no number counts as the default. */
function seconds(
  context: Context,
  { variable, floor, otherwise }: SecondsRule,
): { readonly seconds: number; readonly where: ScalarTree } | undefined {
  const tree = fromEnvironment(context, variable);
  if (tree === undefined) return undefined;
  const text = String(tree.value);
  const given = /^[+-]?\d+$/.test(text) ? Number(text) : otherwise;
  const effective = Math.max(given, floor);
  if (String(effective) !== text) {
    context.work.note(
      tree,
      'carried-differently',
      `${effective} s is what the program makes of it`,
    );
  }
  return { seconds: effective, where: tree };
}
