// SPDX-License-Identifier: Apache-2.0
// Settings of the running program itself: the cluster it serves, its state, its listeners, its log.
import * as z from 'zod';
import { listenAddress, listenAddressOrOff } from './address-leaves.ts';
import { duration } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { filePath, namespace, nonEmptyText, tag } from './name-leaves.ts';

export const clusterSchema = section({
  name: key(
    tag().prefault('kubernetes'),
    'Name of the Kubernetes cluster, for people: it becomes a tag on each VM. Ownership rests on the cluster’s uid, so two clusters may share a name.',
    {
      replaces: { externalgrpc: 'defaults.vm_tag_prefix' },
      note: 'vm_tag_prefix is a whole tag there; a second tag goes to `proxmox.<region>.tags`',
    },
  ),
  kubeconfig: key(filePath().optional(), 'Kubeconfig file.', {
    defaultText: 'in a pod its service account, else `KUBECONFIG`, else `~/.kube/config`',
    replaces: { kubenodesmith: '--kubeconfig' },
  }),
  context: key(nonEmptyText().optional(), 'Context inside the kubeconfig.', {
    defaultText: 'the kubeconfig’s current context',
  }),
  cloudController: key(
    z.boolean().prefault(false),
    'Whether a cloud controller manager for Proxmox runs in the cluster: it sets provider ids and removes Nodes then, and we do neither.',
  ),
  namespace: key(
    namespace().prefault('pvescaler'),
    'Namespace of our Lease and Events, and of Secrets that name none.',
  ),
});

export const stateSchema = section({
  path: key(
    filePath().prefault('/var/lib/pvescaler/state.db'),
    'SQLite file with intents and machines. Keep it on a disk that survives a restart.',
    { note: 'PROVIDER_STATE_DB defaulted to a file in /tmp, which a reboot empties' },
  ),
});

const grpcTls = z.strictObject({
  cert: key(filePath(), 'Certificate of the server (PEM). Read again when the file changes.'),
  key: key(filePath(), 'Private key of the server (PEM).'),
  clientCa: key(filePath(), 'CA that signs the certificates of clients (PEM).'),
  allow: key(
    z.array(nonEmptyText()).prefault(['cluster-autoscaler']),
    'Who is let in, compared exactly with the names in the client’s certificate. A name counts as common name or DNS name, a URI (`spiffe://…`), an e-mail address or an IP address as alternative name of that sort only. An empty list lets nobody in.',
    {
      examples: [['spiffe://cluster.local/ns/pvescaler/sa/cluster-autoscaler']],
    },
  ),
});

export const grpcSchema = section({
  listen: key(listenAddress().prefault(':50051'), 'Where the Cluster Autoscaler reaches us.', {
    replaces: { externalgrpc: ['--bind', '--port'] },
    examples: [':50051', '[fe80::1%eth0]:50051'],
  }),
  tls: key(grpcTls.optional(), 'Mutual TLS: who may order and delete machines.'),
  insecure: key(
    z.boolean().prefault(false),
    'Serve without TLS: whoever reaches the port can create and delete VMs.',
  ),
  expander: key(
    z
      .strictObject({
        listen: key(listenAddress().prefault(':50052'), 'Where the expander listens.'),
      })
      .optional(),
    'Serve the Cluster Autoscaler’s gRPC expander, which prefers pools whose hosts have room.',
  ),
});

export const httpSchema = section({
  health: key(
    listenAddressOrOff().prefault('0.0.0.0:8080'),
    'Health, readiness and metrics: `/healthz`, `/readyz`, `/metrics`.',
    { replaces: { kubenodesmith: ':8080 /healthz (fixed)' } },
  ),
  metrics: key(z.boolean().prefault(true), 'Whether the health listener also serves `/metrics`.'),
  dashboard: key(
    listenAddressOrOff().prefault('127.0.0.1:8081'),
    'Dashboard and JSON API. They ask for no password: keep them on loopback or behind a proxy that does.',
  ),
});

export const logSchema = section({
  level: key(
    z.enum(['trace', 'debug', 'info', 'warn', 'error']).prefault('info'),
    'The least important level that is logged.',
    { replaces: { externalgrpc: '--log-level' } },
  ),
  format: key(
    z.enum(['json', 'text']).prefault('json'),
    'One JSON object per line, or text for people.',
  ),
});

export const intervalsSchema = section({
  reconcile: key(
    duration({ min: '5s' }).prefault('20s'),
    'Pause between two looks at all machines. At least 5 s; with mode externalgrpc 30 s hold for more.',
    { replaces: { externalgrpc: 'RECONCILE_INTERVAL_SECONDS' } },
  ),
  scan: key(
    duration({ min: '1s' }).prefault('15s'),
    'Pause between two rounds of the standalone autoscaler. Events make it look sooner.',
    {
      replaces: { 'proxmox-autoscaler': 'scan_interval', kubenodesmith: 'pollingInterval' },
      note: '15 s (proxmox-autoscaler) won over 30 s (KubeNodeSmith)',
    },
  ),
});

export const cleanupSchema = section({
  lostAfter: key(
    duration().prefault('5m'),
    'A machine of ours whose Node or VM has been gone this long counts as lost and is replaced. A Node that is only not ready is left alone.',
    { replaces: { 'proxmox-autoscaler': 'pxe_vm_lost_cleanup_delay' } },
  ),
  orphans: key(
    z.enum(['report', 'delete']).prefault('report'),
    'What to do with VMs, seed ISOs and addresses of ours that belong to no machine any more.',
  ),
});
