// SPDX-License-Identifier: Apache-2.0
// Every check of doctor with an installation in which it passes, and one in which it does not.
import { describe, expect, it } from 'vitest';
import { poolDefinition } from '../../src/config/index.ts';
import { CHECK_NAMES, type CheckName, type CheckResult } from '../../src/doctor/index.ts';
import { RESOURCE_DEFINITIONS } from '../../src/kubernetes/index.ts';
import type { ClusterDescription } from '../../src/sim/proxmox/index.ts';
import {
  AUTOSCALER_ARGS,
  type Changes,
  CLOSED_ENDPOINT,
  examineInstallation,
  serveOtherCluster,
} from './installation.ts';

interface FailingFixture extends Changes {
  /** Default: failure. */
  readonly status?: 'warning' | 'failure';
  readonly cause: RegExp;
  readonly fix: RegExp;
}

const GIB = 2 ** 30;

function changeHosts(
  cluster: ClusterDescription,
  change: Partial<ClusterDescription['hosts'][number]>,
): ClusterDescription {
  const [first, ...others] = cluster.hosts;
  return { ...cluster, hosts: [{ ...first!, ...change }, ...others] };
}

function changeStorage(
  cluster: ClusterDescription,
  name: string,
  change: Partial<ClusterDescription['storages'][number]>,
): ClusterDescription {
  const storages = cluster.storages.map((one) => (one.name === name ? { ...one, ...change } : one));
  return { ...cluster, storages };
}

function withRole(privs: readonly string[]): NonNullable<Changes['cluster']> {
  return (cluster) => ({
    ...cluster,
    roles: [{ id: 'Scaler', privs }],
    acl: [{ path: '/', role: 'Scaler', user: 'scaler@pve' }],
  });
}

const EVERYTHING_BUT_CLONE = [
  'VM.Allocate VM.Audit VM.Config.CDROM VM.Config.CPU VM.Config.Cloudinit VM.Config.Disk',
  'VM.Config.HWType VM.Config.Memory VM.Config.Network VM.Config.Options VM.PowerMgmt',
  'Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit',
  'SDN.Use Sys.Audit Sys.AccessNetwork',
].flatMap((line) => line.split(' '));

const AGENT_PRIVILEGES_9 = ['VM.GuestAgent.Audit', 'VM.GuestAgent.Unrestricted'];

const FAILING: Readonly<Record<CheckName, FailingFixture>> = {
  secret: {
    environment: { TOKEN_SECRET: undefined },
    cause: /the variable is not set/,
    fix: /exists, is readable/,
  },
  file: {
    files: { '/keys/id.pub': undefined },
    cause: /\/keys\/id\.pub does not exist/,
    fix: /Correct ssh\.publicKeyFiles/,
  },
  'checksum-list': {
    checksums: `${'cd'.repeat(32)}  jammy.img\n`,
    cause: /noble\.img is not in the list/,
    fix: /Check url and checksumUrl/,
  },
  endpoint: {
    usesSockets: true,
    config: ({ proxmox }) => (proxmox.lab.endpoints = [CLOSED_ENDPOINT, ...proxmox.lab.endpoints]),
    cause: /127\.0\.0\.1:1/,
    fix: /port 8006/,
  },
  tls: {
    usesSockets: true,
    config: ({ proxmox }) => (proxmox.lab.tls.fingerprints = []),
    cause: /the certificate of 127\.0\.0\.1:\d+ is not trusted/,
    fix: /proxmox\.lab\.tls:\nfingerprints: \["([0-9A-F]{2}:){31}[0-9A-F]{2}"\]$/,
  },
  'host-key': {
    ssh: (draft) => {
      draft.hostKeys = [];
      draft.knownHosts = '/keys/known_hosts';
    },
    cause:
      /127\.0\.0\.1\]:\d+ presents the host key ssh-ed25519 SHA256:\S+, and \/keys\/known_hosts/,
    fix: /ssh-keyscan -p \d+ 127\.0\.0\.1 >> \/keys\/known_hosts/,
  },
  login: {
    environment: { TOKEN_SECRET: 'wrong' },
    cause: /Authentication failed|invalid token/i,
    fix: /Check the token/,
  },
  version: {
    cluster: (cluster) => changeHosts(cluster, { release: '8.3.5' }),
    cause: /Proxmox VE 8\.3\.5 is too old for machines from images/,
    fix: /Upgrade to Proxmox VE 8\.4/,
  },
  token: {
    status: 'warning',
    cluster: (cluster) => ({
      ...cluster,
      users: cluster.users?.map((user) => ({
        ...user,
        tokens: user.tokens?.map((token) => ({
          ...token,
          expire: Math.floor(Date.now() / 1_000) + 86_400,
        })),
      })) as never,
    }),
    cause: /scaler@pve!sim expires on \d{4}-/,
    fix: /Create a new token/,
  },
  region: {
    proxmox: (sim) =>
      void sim.faults.add({
        endpoint: 'GET /cluster/resources',
        kind: 'error',
        status: 500,
        message: 'cluster not ready - no quorum?',
        times: 100,
      }),
    cause: /no quorum/,
    fix: /./,
  },
  privileges: {
    cluster: withRole([...EVERYTHING_BUT_CLONE, ...AGENT_PRIVILEGES_9]),
    cause: /scaler@pve!sim lacks VM\.Clone on \/vms/,
    fix: /\npveum role add \S+ --privs "VM\.Clone"\npveum acl modify \/vms --users scaler@pve /,
  },
  hosts: {
    config: ({ proxmox }) => (proxmox.lab.hosts.allow = ['pve1', 'pve9']),
    cause: /pve9 in hosts\.allow or hosts\.deny does not exist; Proxmox has pve1, pve2/,
    fix: /Correct proxmox\.lab\.hosts/,
  },
  'seed-storage': {
    status: 'warning',
    cluster: (cluster) => changeStorage(cluster, 'local', { content: ['import', 'iso'] }),
    config: ({ proxmox }) => (proxmox.lab.storage.seeds = 'local'),
    cause: /storage\.seeds and storage\.images are the same, local/,
    fix: /\npvesm add dir seeds /,
  },
  'vm-ids': {
    cluster: (cluster) => ({
      ...cluster,
      vms: [
        ...(cluster.vms ?? []),
        ...Array.from({ length: 51 }, (_, at) => ({ id: 1_250 + at, host: 'pve1' })),
      ],
    }),
    cause: /all ids of 1250-1300 belong to other VMs/,
    fix: /Widen proxmox\.lab\.vmIds/,
  },
  addresses: {
    cluster: (cluster) => ({
      ...cluster,
      vms: [
        ...(cluster.vms ?? []),
        ...Array.from({ length: 10 }, (_, at) => ({
          id: 400 + at,
          host: 'pve1',
          config: { name: `other-${at}`, ipconfig0: `ip=10.0.0.${10 + at}/24` },
        })),
      ],
    }),
    cause: /other VMs have every address/,
    fix: /Widen network\.ip\.pool of pool workers/,
  },
  clock: {
    cluster: (cluster) => changeHosts(cluster, { clockSkew: -300 }),
    cause: /the clock of pve1 differs by (299|300) s/,
    fix: /timedatectl/,
  },
  storage: {
    cluster: (cluster) => changeStorage(cluster, 'local', { content: ['vztmpl'] }),
    cause: /local does not accept content import; it accepts vztmpl/,
    fix: /\npvesm set local --content vztmpl,import/,
  },
  space: {
    cluster: (cluster) => changeStorage(cluster, 'local-lvm', { size: 10 * GIB }),
    cause: /local-lvm on pve1 has 10 GiB free; one machine needs 20 GiB/,
    fix: /Free space/,
  },
  bridge: {
    cluster: (cluster) => changeHosts(cluster, { bridges: [{ name: 'vmbr1', vlanAware: true }] }),
    cause: /pve1 has no bridge vmbr0; it has vmbr1/,
    fix: /create the bridge/,
  },
  vlan: {
    cluster: (cluster) =>
      changeHosts(cluster, { bridges: [{ name: 'vmbr0', vlanAware: true, vlans: '2-10 30' }] }),
    cause: /vmbr0 carries the VLANs 2-10 30, and not 20/,
    fix: /bridge-vids/,
  },
  image: {
    cluster: (cluster) => ({ ...cluster, urls: [] }),
    cause: /Can't connect to images\.example/,
    fix: /./,
  },
  template: {
    cluster: (cluster) => ({
      ...cluster,
      vms: [{ id: 9_000, host: 'pve1', template: true, config: { scsi0: 'local-lvm:8' } }],
    }),
    cause: /9000 is only on pve1, and its disk on the local storage local-lvm: pve2 cannot/,
    fix: /\npvescaler template build base --host pve2$/,
  },
  'api-server': {
    kubernetes: (sim) =>
      sim.faults.add({ path: '/version', fault: { kind: 'status', status: 503 }, times: 100 }),
    cause: /read the version of the API server/,
    fix: /./,
  },
  'kubernetes-rights': {
    kubernetes: (sim) => sim.access.deny({ verb: 'patch', group: '', resource: 'nodes' }),
    cause: /may not patch nodes \(needed to set a missing provider id/,
    fix: /deploy\/manifests\/rbac\.yaml/,
  },
  state: {
    config: ({ state }) => Object.assign(state, { kubernetes: {} }),
    cause: /does not know ProxmoxMachine, ProxmoxMachineRequest, .* of pvescaler\.dev\/v1alpha1/,
    fix: /\nkubectl apply -f deploy\/crds$/,
  },
  'pool-objects': {
    config: ({ cluster }) => Object.assign(cluster, { poolObjects: true }),
    cause: /does not know ProxmoxPool of pvescaler\.dev\/v1alpha1/,
    fix: /\nkubectl apply -f deploy\/crds\/proxmoxpools\.yaml$/,
  },
  'join-endpoint': {
    usesSockets: true,
    config: ({ join }) => (join.k3s.server = CLOSED_ENDPOINT),
    cause: /127\.0\.0\.1:1/,
    fix: /join\.k3s\.server: machines must reach it too/,
  },
  'join-token': {
    kubernetes: (sim) =>
      sim.remove('v1', 'secrets', { name: 'bootstrap-token-abcdef', namespace: 'kube-system' }),
    cause: /the server refuses the token \(status 401\)/,
    fix: /token: auto/,
  },
  'provider-ids': {
    kubernetes: (sim) =>
      void sim.create('v1', 'nodes', {
        metadata: { name: 'workers-2', labels: { 'autoscaler.proxmox/group': 'workers' } },
        spec: { providerID: 'aws:///i-1' },
      }),
    cause: /workers-2 \(aws:\/\/\/i-1\)/,
    fix: /only one cloud controller/,
  },
  'cluster-autoscaler': {
    autoscaler: { args: ['--cloud-provider=aws'] },
    cause: /cluster-autoscaler has --cloud-provider=aws and not externalgrpc/,
    fix: /cluster-autoscaler\.md/,
  },
};

const OTHER_KEY = `SHA256:${'A'.repeat(43)}`;

/** What differs over SSH. */
const FAILING_OVER_SSH: Partial<Record<CheckName, FailingFixture>> = {
  endpoint: {
    ssh: (draft) => void (draft.hosts = [...draft.hosts, '127.0.0.1:1']),
    cause: /127\.0\.0\.1:1 cannot be reached over SSH/,
    fix: /sshd runs on it, and that port 1 is open/,
  },
  login: {
    ssh: (draft) => void (draft.user = 'admin'),
    cause: /pvesh and qm must run as root/,
    fix: /Set transport\.ssh\.user to root/,
  },
  hosts: {
    ssh: (draft) => void (draft.hosts = draft.hosts.slice(0, 1)),
    cause: /no address in transport\.ssh\.hosts is that of pve2/,
    fix: /Add it to proxmox\.lab\.transport\.ssh\.hosts/,
  },
};

const REGION_CHECKS = CHECK_NAMES.slice(
  CHECK_NAMES.indexOf('endpoint'),
  CHECK_NAMES.indexOf('api-server'),
).filter((name) => !['tls', 'token', 'privileges'].includes(name));

function find(results: readonly CheckResult[], name: CheckName): readonly CheckResult[] {
  return results.filter((result) => result.name === name);
}

describe('examine', () => {
  it('finds every check ok in an installation without problems', async () => {
    const results = await examineInstallation({ usesSockets: true });
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([]);
    const overSsh = await examineInstallation({ ssh: () => undefined });
    expect(overSsh.filter(({ status }) => status !== 'ok')).toEqual([]);
    const names = [...results, ...overSsh].map(({ name }) => name);
    expect(new Set(names)).toEqual(new Set(CHECK_NAMES));
  });

  it.each(CHECK_NAMES)('reports what is wrong in the check %s, and how to fix it', async (name) => {
    const { status = 'failure', cause, fix, ...changes } = FAILING[name];
    const found = find(await examineInstallation(changes), name);
    expect(found).toContainEqual(
      expect.objectContaining({
        status,
        cause: expect.stringMatching(cause) as unknown,
        fix: expect.stringMatching(fix) as unknown,
      }),
    );
  });

  it.each(REGION_CHECKS)('reports what is wrong in the check %s over SSH too', async (name) => {
    const fixture = FAILING_OVER_SSH[name] ?? FAILING[name];
    const { status = 'failure', cause, fix, ...changes } = fixture;
    const results = await examineInstallation({ ssh: () => undefined, ...changes });
    expect(find(results, name)).toContainEqual(
      expect.objectContaining({
        status,
        cause: expect.stringMatching(cause) as unknown,
        fix: expect.stringMatching(fix) as unknown,
      }),
    );
  });

  it('accepts the definition of ProxmoxPool of this release, and names what an older one lacks', async () => {
    const examineWith = async (definition: object) => {
      const results = await examineInstallation({
        config: ({ cluster }) => Object.assign(cluster, { poolObjects: true }),
        kubernetes: (sim) => sim.install([definition]),
      });
      return find(results, 'pool-objects');
    };
    const current = poolDefinition();
    expect(await examineWith(current)).toMatchObject([
      { status: 'ok', detail: 'ProxmoxPool objects in namespace pvescaler' },
    ]);
    const older = JSON.stringify(current)
      .replace('"deletionPolicy":', '"wasDeletionPolicy":')
      .replace('"maxReplicas":', '"wasMaxReplicas":')
      .replace(',"rke2"', '');
    expect(await examineWith(JSON.parse(older))).toMatchObject([
      {
        status: 'failure',
        cause:
          'the definition of ProxmoxPool is of an older release: it does not know spec.deletionPolicy, spec.join rke2, status.maxReplicas',
      },
    ]);
  });

  it('accepts the definitions of records of this release, and names what older ones lack', async () => {
    const examineWith = async (definitions: readonly object[]) => {
      const results = await examineInstallation({
        config: ({ state }) => Object.assign(state, { kubernetes: {} }),
        kubernetes: (sim) => sim.install(definitions),
      });
      return find(results, 'state');
    };
    expect(await examineWith(RESOURCE_DEFINITIONS)).toMatchObject([
      { status: 'ok', detail: expect.stringContaining('records in') },
    ]);
    const older = JSON.stringify(RESOURCE_DEFINITIONS)
      .replace('"nodeUid":', '"wasNodeUid":')
      .replace('"cancel-drain",', '');
    expect(await examineWith(JSON.parse(older))).toMatchObject([
      {
        status: 'failure',
        cause: expect.stringMatching(
          /^the definition of ProxmoxMachine is of an older release: it does not know .*nodeUid; the definition of ProxmoxMachineRequest .* spec\.kind cancel-drain$/,
        ),
        fix: expect.stringMatching(/\nkubectl apply -f deploy\/crds$/),
      },
    ]);
  });

  it('examines the rights on ProxmoxPool objects only where there are any', async () => {
    const rightsOf = async (poolObjects: boolean) => {
      const results = await examineInstallation({
        config: ({ cluster }) => Object.assign(cluster, { poolObjects }),
        kubernetes: (sim) => {
          const group = 'pvescaler.dev';
          sim.access.deny({ verb: 'patch', group, resource: 'proxmoxpools' });
          sim.access.deny({ verb: 'patch', group, resource: 'proxmoxpools/status' });
        },
      });
      return find(results, 'kubernetes-rights').filter(({ subject }) =>
        subject?.startsWith('proxmoxpools'),
      );
    };
    expect(await rightsOf(false)).toEqual([]);
    expect(await rightsOf(true)).toMatchObject([
      { status: 'failure', cause: expect.stringContaining('by a finalizer') },
      { status: 'failure', cause: expect.stringContaining('may not patch proxmoxpools/status') },
    ]);
  });

  it('reports that the token of the dashboard cannot be read', async () => {
    const examineWith = async (files: Changes['files']) => {
      const results = await examineInstallation({
        config: (draft) =>
          Object.assign(draft, { http: { dashboardTokenFile: '/keys/dashboard' } }),
        ...(files !== undefined && { files }),
      });
      return find(results, 'secret').filter(({ subject }) => subject === 'http.dashboardTokenFile');
    };
    expect(await examineWith({ '/keys/dashboard': 'abc' })).toMatchObject([{ status: 'ok' }]);
    expect(await examineWith(undefined)).toMatchObject([{ status: 'failure' }]);
  });

  it('warns about several replicas with a database each', async () => {
    const server = { name: 'main', image: 'registry.example/pvescaler:0.1.0', args: ['serve'] };
    const results = await examineInstallation({
      kubernetes: (sim) => {
        sim.create('v1', 'namespaces', { metadata: { name: 'pvescaler' } });
        for (const name of ['a', 'b'])
          sim.create('v1', 'pods', {
            metadata: { name, namespace: 'pvescaler' },
            spec: { containers: [server] },
          });
      },
    });
    expect(find(results, 'state')).toMatchObject([
      { status: 'warning', cause: expect.stringContaining('a and b run in namespace pvescaler') },
    ]);
  });

  it('reports a connection over SSH that fails once, and skips what depends on it', async () => {
    const results = await examineInstallation({
      ssh: (draft) => void (draft.hostKeys = [OTHER_KEY]),
    });
    const region = results.filter(({ group }) => group.startsWith('region lab'));
    const failed = region.filter(({ status }) => status !== 'ok' && status !== 'skipped');
    expect(failed.map(({ name }) => name)).toEqual(['host-key', 'host-key']);
    expect(find(results, 'endpoint').map(({ status }) => status)).toEqual(['ok', 'ok']);
    expect(find(results, 'login')).toMatchObject([
      { status: 'skipped', detail: 'the check host-key failed' },
      { status: 'skipped' },
    ]);
  });

  it('skips the checks of a host that SSH does not reach', async () => {
    const results = await examineInstallation({
      ssh: (draft) => void (draft.hosts = [draft.hosts[0] ?? '', '127.0.0.1:1']),
    });
    const onHost = results.filter(({ group }) => group === 'region lab, host pve2');
    expect(onHost.length).toBeGreaterThan(0);
    expect(new Set(onHost.map(({ status }) => status))).toEqual(new Set(['skipped']));
    expect(find(results, 'endpoint').map(({ status }) => status)).toEqual(['ok', 'failure']);
    expect(find(results, 'hosts')).toMatchObject([{ status: 'ok' }]);
  });

  it('reports a host of another cluster in transport.ssh.hosts', async () => {
    const results = await examineInstallation({
      ssh: async (draft) => {
        const other = await serveOtherCluster('pve9');
        draft.hosts = [...draft.hosts, ...other.hosts];
        draft.hostKeys = [...(draft.hostKeys ?? []), ...(other.hostKeys ?? [])];
      },
    });
    expect(find(results, 'hosts')).toMatchObject([
      { cause: 'pve9 in transport.ssh.hosts is not in the cluster of pve1, pve2' },
    ]);
  });

  it('names the privileges of 8.4 there', async () => {
    const cluster = withRole([...EVERYTHING_BUT_CLONE, 'VM.Clone']);
    const results = await examineInstallation({ version: '8.4', cluster });
    const agent = find(results, 'privileges').find(({ subject }) => subject === 'guest agent');
    expect(agent).toMatchObject({ cause: 'scaler@pve!sim lacks VM.Monitor on /vms' });
  });

  it('grants to the token too when it has privilege separation', async () => {
    const results = await examineInstallation({
      cluster: (cluster) => ({
        ...cluster,
        users: cluster.users?.map((user) => ({
          ...user,
          tokens: user.tokens?.map((token) => ({ ...token, privsep: true })),
        })) as never,
      }),
    });
    const disks = find(results, 'privileges').find(({ subject }) => subject === 'list VMs');
    expect(disks).toMatchObject({
      fix: expect.stringContaining("pveum acl modify /vms --tokens 'scaler@pve!sim'") as unknown,
    });
  });

  it('skips checks of hosts that are off, and of regions that cannot be read', async () => {
    const off = await examineInstallation({
      cluster: (cluster) => ({
        ...cluster,
        hosts: cluster.hosts.map((host) => ({ ...host, online: host.name === 'pve1' })),
      }),
    });
    const onHost = off.filter(({ group }) => group === 'region lab, host pve2');
    expect(onHost.length).toBeGreaterThan(0);
    expect(new Set(onHost.map(({ status }) => status))).toEqual(new Set(['skipped']));
    expect(find(off, 'hosts')).toMatchObject([{ status: 'warning' }]);

    const unread = await examineInstallation({ environment: { TOKEN_SECRET: 'wrong' } });
    expect(new Set(find(unread, 'privileges').map(({ status }) => status))).toEqual(
      new Set(['skipped']),
    );
  });

  it('warns about a server token and about flags of the Cluster Autoscaler', async () => {
    const results = await examineInstallation({
      autoscaler: { args: AUTOSCALER_ARGS.slice(0, 2) },
      environment: { JOIN_TOKEN: 'abcdef.0123456789abcdef' },
    });
    expect(find(results, 'cluster-autoscaler')).toMatchObject([
      { status: 'warning', cause: expect.stringContaining('node-info-cache') as unknown },
    ]);
    expect(find(results, 'join-token')).toMatchObject([
      { status: 'warning', cause: expect.stringContaining('no CA hash') as unknown },
    ]);
  });

  it('accepts a template that pvescaler built on each host, with an id of its own there', async () => {
    const tags = 'kubernetes;pvescaler;template-base;version-1';
    const results = await examineInstallation({
      cluster: (cluster) => ({
        ...cluster,
        vms: ['pve1', 'pve2'].map((host, at) => ({
          id: 9_000 + at,
          host,
          template: true,
          config: { name: 'base', scsi0: 'local-lvm:8', tags },
        })),
      }),
    });
    expect(find(results, 'template')).toMatchObject([
      { status: 'ok', detail: 'VM 9000 on pve1' },
      { status: 'ok', detail: 'VM 9001 on pve2' },
    ]);
  });

  describe('with VMs created by hand, and no pool', () => {
    const withoutPools: Changes['config'] = (draft) => {
      draft.pools = [];
      draft.mode = 'standalone';
      draft.templates = { base: { id: 9_000, image: 'noble' } };
    };

    it('examines images, storages, bridges, templates and privileges', async () => {
      const results = await examineInstallation({
        config: withoutPools,
        cluster: withRole([...EVERYTHING_BUT_CLONE]),
      });
      const failed = results.filter(({ status }) => status === 'failure');
      expect(failed.map(({ name, subject }) => `${name} ${subject}`)).toEqual([
        'privileges clones of templates',
        'privileges guest agent',
        'privileges commands in guests',
      ]);
      const ok = results.filter(({ status }) => status === 'ok');
      const names = ok.map(({ name, subject = '' }) => `${name} ${subject}`);
      for (const name of [
        'checksum-list images.noble',
        'storage images (local)',
        'bridge vmbr0',
        'image noble',
        'template base',
      ]) {
        expect(names).toContain(name);
      }
    });

    it('warns that a template is not built yet, which the first VM does', async () => {
      const results = await examineInstallation({
        config: withoutPools,
        cluster: (cluster) => ({ ...cluster, vms: [] }),
      });
      expect(find(results, 'template')[0]).toMatchObject({
        status: 'warning',
        cause: 'there is no template 9000 yet',
        fix: 'Build it:\npvescaler template build base',
      });
    });
  });

  it('reads nothing from Kubernetes with scope proxmox', async () => {
    const results = await examineInstallation({
      scope: 'proxmox',
      kubernetes: (sim) => {
        sim.onRequest = () => {
          throw new Error('a request to Kubernetes');
        };
      },
    });
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(results.some(({ group }) => group === 'Kubernetes')).toBe(false);
    expect(results.length).toBeGreaterThan(40);
  });
});
