// SPDX-License-Identifier: Apache-2.0
// The account of a region: its token, and its privileges feature by feature.
import type { CallOptions } from '../ports/hypervisor.ts';
import type { RegionInspector, TokenInfo } from '../ports/inspection.ts';
import { type Check, failure, type Outcome, ok, skipped, warning } from './check.ts';
import { type RegionReader, unique } from './region-reader.ts';

const DAY_MS = 24 * 3_600_000;
const EXPIRES_SOON_MS = 14 * DAY_MS;

export function tokenCheck(reader: RegionReader, now: () => number): Check {
  return {
    name: 'token',
    group: reader.group,
    run: (signal) =>
      reader.withView(async (_view, inspector) => {
        const { account } = inspector;
        return account.includes('!')
          ? judgeToken(account, await inspector.token({ signal }), now())
          : warning(`${account} logs in with a password`, 'Use an API token.');
      }),
  };
}

function judgeToken(account: string, token: TokenInfo | undefined, now: number): Outcome {
  if (token === undefined) return skipped('the token may not read its own expiry and rights');
  const { expiresAt = Number.POSITIVE_INFINITY, hasPrivilegeSeparation } = token;
  if (expiresAt - now < EXPIRES_SOON_MS) {
    const when = new Date(expiresAt).toISOString().slice(0, 10);
    return warning(`${account} expires on ${when}`, 'Create a new token, or extend this one.');
  }
  if (hasPrivilegeSeparation) {
    return ok(`${account} has privilege separation: grant rights to user and token`);
  }
  const [user = ''] = account.split('!');
  return user === 'root@pam'
    ? warning(
        `${account} has all rights of root, since it has no privilege separation`,
        'Create a user with a role of its own, as docs/guides/cluster-autoscaler.md shows.',
      )
    : ok(`${account} has the rights of ${user}`);
}

interface Need {
  readonly privileges: readonly string[];
  readonly path: string;
}

interface Feature {
  readonly subject: string;
  readonly needs: readonly Need[];
  /** Without it less works, and nothing fails. */
  readonly isOptional?: boolean;
}

export function privilegeChecks(reader: RegionReader): readonly Check[] {
  // The subjects are known before the region is read; the paths are not.
  const subjects = unique(
    features(reader, { hosts: [], major: 9, vnets: [] }).map(({ subject }) => subject),
  );
  return subjects.map((subject) => ({
    name: 'privileges',
    group: reader.group,
    subject,
    run: (signal) =>
      reader.withView(async (view, inspector) => {
        const hosts = reader.usableHosts(view).map(({ name }) => name);
        const major = Number.parseInt(view.version, 10);
        const vnets = await readVnets(inspector, hosts, { signal });
        const feature = features(reader, { hosts, major, vnets }).find(
          (one) => one.subject === subject,
        );
        return feature === undefined ? ok('') : judge(inspector, feature, { signal });
      }),
  }));
}

async function judge(
  inspector: RegionInspector,
  { needs, isOptional = false }: Feature,
  call: CallOptions,
): Promise<Outcome> {
  const read = async ({ path, privileges }: Need) => {
    const granted = await inspector.hypervisor.permissions(path, call);
    return { path, privileges: privileges.filter((name) => !granted.includes(name)) };
  };
  const missing = (await Promise.all(needs.map(read))).filter((need) => need.privileges.length > 0);
  const [first] = missing;
  const all = unique(needs.flatMap(({ privileges }) => privileges));
  if (first === undefined) return ok(all.join(', '));
  const names = unique(missing.flatMap(({ privileges }) => privileges));
  const cause = missing
    .map(({ path, privileges }) => `${privileges.join(', ')} on ${path}`)
    .join('; ');
  const fix = await grantCommands(
    inspector,
    { names, paths: missing.map(({ path }) => path) },
    call,
  );
  return (isOptional ? warning : failure)(`${inspector.account} lacks ${cause}`, fix);
}

/** A token with privilege separation needs the rights besides its user. It often may not read whether it has it. */
async function grantCommands(
  inspector: RegionInspector,
  { names, paths }: { readonly names: readonly string[]; readonly paths: readonly string[] },
  call: CallOptions,
): Promise<string> {
  const { account } = inspector;
  const [user = ''] = account.split('!');
  const token = await inspector.token(call).catch(() => undefined);
  const mayBeSeparated = account !== user && token?.hasPrivilegeSeparation !== false;
  const grantees = [`--users ${user}`, ...(mayBeSeparated ? [`--tokens '${account}'`] : [])];
  const role = 'MachineScalerMore';
  return [
    `Add the privileges to the role of the account, or grant another role on a Proxmox host${
      mayBeSeparated ? ' (to the token only if it has privilege separation)' : ''
    }:`,
    `pveum role add ${role} --privs "${names.join(' ')}"`,
    ...paths.flatMap((path) =>
      grantees.map((who) => `pveum acl modify ${path} ${who} --roles ${role}`),
    ),
  ].join('\n');
}

/** The zones of VNets are not read, so their privileges are not examined. */
async function readVnets(
  inspector: RegionInspector,
  [host]: readonly string[],
  call: CallOptions,
): Promise<readonly string[]> {
  if (host === undefined) return [];
  const bridges = await inspector.bridges(host, call).catch(() => []);
  return bridges.filter(({ isLocal }) => !isLocal).map(({ name }) => name);
}

interface RegionFacts {
  readonly hosts: readonly string[];
  readonly vnets: readonly string[];
  /** Of the Proxmox VE version. */
  readonly major: number;
}

const VM_OPTIONS = ['CPU', 'Memory', 'Disk', 'HWType', 'Network', 'Options'];

function features(reader: RegionReader, { hosts, major, vnets }: RegionFacts): readonly Feature[] {
  const { region, pools, config, needs } = reader;
  const { storage, resourcePool } = region;
  const vms = resourcePool === undefined ? '/vms' : `/pool/${resourcePool}`;
  const on = (path: string, ...privileges: readonly string[]): Need => ({ path, privileges });
  const onHosts = (privilege: string) => hosts.map((host) => on(`/nodes/${host}`, privilege));
  const onDisks = (...privileges: readonly string[]) =>
    storage.disks.map((name) => on(`/storage/${name}`, ...privileges));
  const [audit, execute] =
    major >= 9
      ? ['VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted']
      : ['VM.Monitor', 'VM.Monitor'];
  const joinsByAgent = pools.some(
    ({ join }) => join !== 'none' && 'via' in (config.join[join] ?? {}) && viaAgent(reader, join),
  );
  // The guest of a template that is built reports through the agent.
  const buildsTemplates = Object.values(config.templates).some(({ image }) => image !== undefined);
  const options = VM_OPTIONS.map((name) => `VM.Config.${name}`);
  return [
    { subject: 'list VMs', needs: [on('/vms', 'VM.Audit')] },
    { subject: 'host capacity', needs: onHosts('Sys.Audit') },
    {
      subject: 'create and delete machines',
      needs: [on(vms, 'VM.Allocate', 'VM.PowerMgmt', ...options)],
    },
    { subject: 'disks', needs: onDisks('Datastore.AllocateSpace', 'Datastore.Audit') },
    {
      subject: 'seed ISOs',
      needs: [
        on(vms, 'VM.Config.CDROM'),
        on(
          `/storage/${storage.seeds}`,
          'Datastore.Allocate',
          'Datastore.AllocateTemplate',
          'Datastore.Audit',
        ),
      ],
    },
    ...(reader.usesImages()
      ? [
          {
            subject: 'images',
            needs: [
              on(`/storage/${storage.images}`, 'Datastore.AllocateTemplate', 'Datastore.Audit'),
              ...onHosts('Sys.AccessNetwork'),
            ],
          },
        ]
      : []),
    ...(buildsTemplates || needs.some(({ from }) => from.kind === 'template')
      ? [{ subject: 'clones of templates', needs: [on(vms, 'VM.Clone', 'VM.Config.Cloudinit')] }]
      : []),
    { subject: 'guest agent', needs: [on(vms, audit)] },
    {
      subject: 'commands in guests',
      needs: [on(vms, execute)],
      isOptional: !joinsByAgent && !buildsTemplates,
    },
    { subject: 'network cards', needs: bridgeNeeds(reader, vnets) },
  ];
}

function viaAgent({ config }: RegionReader, join: 'k3s' | 'rke2' | 'kubeadm' | 'custom'): boolean {
  const recipe = config.join[join];
  return recipe !== undefined && 'via' in recipe && recipe.via === 'agent';
}

function bridgeNeeds({ needs }: RegionReader, vnets: readonly string[]): readonly Need[] {
  const cards = needs.flatMap(({ network }) => network.interfaces);
  const names = cards
    .filter(({ bridge }) => !vnets.includes(bridge))
    .map(({ bridge, vlan }) => (vlan === undefined ? bridge : `${bridge}/${vlan}`));
  return unique(names).map((name) => ({
    path: `/sdn/zones/localnetwork/${name}`,
    privileges: ['SDN.Use'],
  }));
}
