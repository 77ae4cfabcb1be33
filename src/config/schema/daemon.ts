// SPDX-License-Identifier: Apache-2.0
// Settings of the daemon itself: the Kubernetes cluster, its state, its listeners, its log.
import * as z from 'zod';
import { listenAddress, listenAddressOrOff } from './address-leaves.ts';
import { duration } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { clusterId, filePath, namespace, nonEmptyText, tag } from './name-leaves.ts';

export const clusterSchema = section({
  name: key(
    tag().prefault('kubernetes'),
    'Display name of the Kubernetes cluster; added to each VM as a tag. Ownership is checked by `id`, so two clusters may share a name.',
    {
      replaces: { externalgrpc: 'defaults.vm_tag_prefix' },
      note: 'in ca-proxmox-externalgrpc vm_tag_prefix is a complete tag; put a second tag in `proxmox.<region>.tags`',
    },
  ),
  id: key(
    clusterId().optional(),
    'Id in the ownership marker of every machine, instead of the uid of the Kubernetes cluster. Needed when two clusters were restored from one etcd backup: they have the same uid and would adopt each other’s machines. Do not change it while machines exist.',
    {
      defaultText:
        'the uid of the namespace `kube-system`; without Kubernetes an id generated once',
    },
  ),
  kubeconfig: key(filePath().optional(), 'Kubeconfig file.', {
    defaultText: 'the service account in a pod, otherwise `KUBECONFIG`, otherwise `~/.kube/config`',
    replaces: { kubenodesmith: '--kubeconfig' },
  }),
  context: key(nonEmptyText().optional(), 'Context in the kubeconfig.', {
    defaultText: 'the current context of the kubeconfig',
  }),
  cloudController: key(
    z.boolean().prefault(false),
    'Set to `true` when a Proxmox cloud controller manager runs in the cluster. It then sets provider ids and removes Nodes, and pvescaler does neither.',
  ),
  namespace: key(
    namespace().prefault('pvescaler'),
    'Namespace of the Lease, the Events and the ProxmoxPool objects of pvescaler, and default namespace of Secret references.',
  ),
  poolObjects: key(
    z.boolean().optional(),
    'Read pools from ProxmoxPool objects in `namespace`, too. Needs the CustomResourceDefinition in `deploy/crds/`.',
    { defaultText: '`true` with `state.kubernetes`, otherwise `false`' },
  ),
});

export const stateSchema = section({
  path: key(
    filePath().prefault('/var/lib/pvescaler/state.db'),
    'SQLite file with intents and machines. Keep it on storage that survives a restart. With `state.kubernetes` it has only the journal of this process, and may be lost.',
    { note: 'PROVIDER_STATE_DB defaulted to a file in /tmp, which is cleared at reboot' },
  ),
  kubernetes: key(
    z
      .strictObject({
        namespace: key(
          namespace().optional(),
          'Namespace of the objects. Replicas that share it share the machines.',
          { defaultText: '`cluster.namespace`' },
        ),
      })
      .optional(),
    'Keep intents and machines as objects of the Kubernetes cluster instead of in `state.path`, for replicas on several machines. Needs the CustomResourceDefinitions of `deploy/crds` and access to the cluster.',
  ),
});

const grpcTls = z.strictObject({
  cert: key(filePath(), 'Server certificate (PEM). Reloaded when the file changes.'),
  key: key(filePath(), 'Server private key (PEM).'),
  clientCa: key(filePath(), 'CA that signs client certificates (PEM).'),
  allow: key(
    z.array(nonEmptyText()).prefault(['cluster-autoscaler']),
    'Allowed client names, matched exactly against the client certificate. A plain name matches the common name or a DNS SAN; a URI (`spiffe://…`), an e-mail address or an IP address matches only a SAN of that type. An empty list rejects every client.',
    {
      examples: [['spiffe://cluster.local/ns/pvescaler/sa/cluster-autoscaler']],
    },
  ),
});

export const grpcSchema = section({
  listen: key(
    listenAddress().prefault(':50051'),
    'Address on which the Cluster Autoscaler connects.',
    {
      replaces: { externalgrpc: ['--bind', '--port'] },
      examples: [':50051', '[fe80::1%eth0]:50051'],
    },
  ),
  tls: key(grpcTls.optional(), 'Mutual TLS: which clients may create and delete machines.'),
  insecure: key(
    z.boolean().prefault(false),
    'Serve without TLS. Every client that can reach the port can then create and delete VMs.',
  ),
  expander: key(
    z
      .strictObject({
        listen: key(listenAddress().prefault(':50052'), 'Address of the expander server.'),
      })
      .optional(),
    'Serve the Cluster Autoscaler gRPC expander, which prefers pools whose hosts have free capacity.',
  ),
});

export const httpSchema = section({
  health: key(
    listenAddressOrOff().prefault('0.0.0.0:8080'),
    'Address of the health, readiness and metrics server: `/healthz`, `/readyz`, `/metrics`.',
    { replaces: { kubenodesmith: ':8080 /healthz (fixed)' } },
  ),
  metrics: key(z.boolean().prefault(true), 'Serve `/metrics` on the health listener.'),
  dashboard: key(
    listenAddressOrOff().prefault('127.0.0.1:8081'),
    'Address of the dashboard and its JSON API. Reading needs no authentication: keep them on loopback or behind an authenticating proxy. A port that is in use is reported, and `serve` continues without the dashboard.',
  ),
  dashboardTokenFile: key(
    z.string().min(1).optional(),
    'File with the token that actions of the dashboard need: scale or pause a pool, drain or delete a machine. Without it the dashboard only shows.',
  ),
  dashboardHosts: key(
    z.array(z.string().min(1)).prefault([]),
    'Host names by which the dashboard may be opened, beside addresses and `localhost`: those of a proxy or an Ingress.',
  ),
});

export const logSchema = section({
  level: key(
    z.enum(['trace', 'debug', 'info', 'warn', 'error']).prefault('info'),
    'Minimum log level.',
    { replaces: { externalgrpc: '--log-level' } },
  ),
  format: key(
    z.enum(['json', 'text']).prefault('json'),
    'Log format: one JSON object per line, or human-readable text.',
  ),
});

export const intervalsSchema = section({
  reconcile: key(
    duration({ min: '5s' }).prefault('20s'),
    'Interval between two reconcile passes over all machines. At least 5 s. In mode externalgrpc a value above 30 s counts as 30 s.',
    { replaces: { externalgrpc: 'RECONCILE_INTERVAL_SECONDS' } },
  ),
  scan: key(
    duration({ min: '1s' }).prefault('15s'),
    'Interval between two passes of the standalone autoscaler. Cluster events trigger a pass earlier.',
    {
      replaces: { 'proxmox-autoscaler': 'scan_interval', kubenodesmith: 'pollingInterval' },
      note: 'the default is 15 s as in proxmox-autoscaler, not 30 s as in KubeNodeSmith',
    },
  ),
});

export const cleanupSchema = section({
  lostAfter: key(
    duration().prefault('5m'),
    'A machine whose Node or VM has been missing for this long counts as lost and is replaced, unless `guards` keep it. A Node that is only NotReady is left alone.',
    { replaces: { 'proxmox-autoscaler': 'pxe_vm_lost_cleanup_delay' } },
  ),
  orphans: key(
    z.enum(['report', 'delete']).prefault('report'),
    'What to do with orphaned VMs, seed ISOs and addresses of pvescaler, which no longer belong to a machine.',
  ),
});
