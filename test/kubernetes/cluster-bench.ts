// SPDX-License-Identifier: Apache-2.0
// The test bench of the cluster contract on a real or simulated API server. Changes by other clients are plain HTTP
// requests without the adapter's code.
import { type ConnectionTls, openKubernetesCluster } from '../../src/kubernetes/index.ts';
import type { ClaimRef, Cluster, PodRef } from '../../src/ports/cluster.ts';
import type {
  ClusterFixture,
  NewNode,
  StoredToken,
} from '../../src/ports/contract/cluster-fixture.ts';
import { readText } from '../../src/ports/contract/transport.contract.ts';
import type { SkippableClock } from '../../src/ports/fakes/skippable-clock.ts';
import type { Random } from '../../src/ports/random.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';
import { openHttpTransport } from '../../src/system/index.ts';
import { SeverableTransport } from './severable-transport.ts';

export interface ApiServer {
  readonly url: string;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  readonly clock: SkippableClock;
  readonly random: Random;
  /** Opens a connection with administrator rights. */
  readonly openTransport: () => Promise<Transport>;
  readonly cleanup: () => Promise<void>;
}

/** Opens the transport with the same options as the program. */
export function openClusterTransport({
  caPem,
  isInsecure,
  serverName,
  client,
}: ConnectionTls): Promise<Transport> {
  return openHttpTransport({
    unreachable: 'KUBERNETES_UNREACHABLE',
    tls: isInsecure
      ? { kind: 'insecure', ...(client && { client }) }
      : {
          kind: 'verify',
          ...(caPem !== undefined && { caPem }),
          ...(serverName !== undefined && { serverName }),
          ...(client && { client }),
        },
  });
}

interface ApiObject {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/pvescaler/leases';
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments';
const NODE_RESOURCES = { cpu: '2', memory: '4Gi', pods: '110' };

/** Acts as kubelet, controller or user. */
class AdminClient {
  readonly #server: ApiServer;
  readonly #transport: Transport;

  constructor(server: ApiServer, transport: Transport) {
    this.#server = server;
    this.#transport = transport;
  }

  async request(
    method: TransportRequest['method'],
    path: string,
    body?: object,
  ): Promise<ApiObject> {
    const isPatch = method === 'PATCH';
    const response = await this.#transport.request({
      method,
      url: `${this.#server.url}${path}`,
      headers: { 'content-type': isPatch ? 'application/merge-patch+json' : 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
      timeoutMs: 10_000,
    });
    const text = await readText(response.body);
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as ApiObject;
  }

  async list(path: string): Promise<readonly ApiObject[]> {
    const { items } = (await this.request('GET', path)) as unknown as { items: ApiObject[] };
    return items;
  }

  async addNode(node: NewNode) {
    const { name, labels, taints, providerId } = node;
    const { metadata } = await this.request('POST', '/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, ...(labels && { labels }) },
      spec: { ...(taints && { taints }), ...(providerId && { providerID: providerId }) },
    });
    await this.request('PATCH', `/api/v1/nodes/${name}/status`, {
      status: this.#buildStatus(node),
    });
    return { name, uid: metadata.uid };
  }

  #buildStatus({ systemUuid, ready = true }: NewNode): object {
    const info = Object.fromEntries(
      ['machineID', 'bootID', 'kernelVersion', 'osImage', 'containerRuntimeVersion']
        .concat(['kubeletVersion', 'kubeProxyVersion', 'operatingSystem', 'architecture'])
        .map((field) => [field, '']),
    );
    const time = new Date(this.#server.clock.now()).toISOString().replace(/\.\d+Z/, 'Z');
    return {
      capacity: NODE_RESOURCES,
      allocatable: NODE_RESOURCES,
      nodeInfo: { ...info, systemUUID: systemUuid ?? '' },
      conditions: [
        {
          type: 'Ready',
          status: ready ? 'True' : 'False',
          reason: ready ? 'KubeletReady' : 'KubeletNotReady',
          message: ready ? 'kubelet is posting ready status' : 'the runtime is down',
          lastHeartbeatTime: time,
          lastTransitionTime: time,
        },
      ],
    };
  }

  async addPod(name: string, nodeName: string): Promise<PodRef> {
    const { metadata } = await this.request('POST', PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app: name } },
      spec: {
        nodeName,
        automountServiceAccountToken: false,
        containers: [{ name: 'main', image: 'none.example/none' }],
      },
    });
    // A pending pod can be evicted regardless of its disruption budget.
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await this.request('PATCH', `${PODS}/${name}/status`, { status });
    return { namespace: 'default', name, uid: metadata.uid };
  }

  protect({ name }: PodRef): Promise<ApiObject> {
    return this.request('POST', BUDGETS, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: name } } },
    });
  }

  async attachVolume(nodeName: string, { namespace, name }: ClaimRef): Promise<string> {
    const volume = `pv-${nodeName}-${name}`;
    await this.request('POST', `/api/v1/namespaces/${namespace}/persistentvolumeclaims`, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        volumeName: volume,
      },
    });
    await this.request('POST', ATTACHMENTS, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: `attach-${volume}` },
      spec: { attacher: 'csi.example', nodeName, source: { persistentVolumeName: volume } },
    });
    return volume;
  }

  async tokens(): Promise<readonly StoredToken[]> {
    const secrets = await this.list('/api/v1/namespaces/kube-system/secrets');
    return secrets
      .filter((secret) => secret['type'] === 'bootstrap.kubernetes.io/token')
      .map(({ data = {} }) => {
        const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString('utf8');
        return {
          token: `${text('token-id')}.${text('token-secret')}`,
          expiresAt: Date.parse(text('expiration')),
          description: text('description'),
          groups: text('auth-extra-groups').split(','),
          usages: ['authentication', 'signing'].filter(
            (usage) => text(`usage-bootstrap-${usage}`) === 'true',
          ),
        };
      });
  }

  async events(node: string): Promise<readonly string[]> {
    const events = await this.list('/apis/events.k8s.io/v1/namespaces/default/events');
    return events
      .filter(({ regarding }) => (regarding as { name: string }).name === node)
      .map((event) => [event['type'], event['reason'], event['note']].join(' '));
  }
}

export async function openClusterBench(server: ApiServer): Promise<ClusterFixture> {
  const { clock } = server;
  const transports: SeverableTransport[] = [];
  const clusters: Cluster[] = [];
  const connect = async () => {
    const cluster = await openKubernetesCluster({
      source: { kind: 'kubeconfig', path: server.kubeconfig },
      openTransport: async (tls) => {
        const transport = new SeverableTransport(await openClusterTransport(tls));
        transports.push(transport);
        return transport;
      },
      clock,
      random: server.random,
    });
    clusters.push(cluster);
    await cluster.waitForChange({ afterRevision: 0 });
    return cluster;
  };
  const cluster = await connect();
  const adminTransport = await server.openTransport();
  const admin = new AdminClient(server, adminTransport);
  return {
    cluster,
    peer: connect,
    advance: (ms) => Promise.resolve(clock.skip(ms)),
    advanceUntil: (work) => work,
    now: () => clock.now(),
    disconnect: () => transports[0]?.cutOff(),
    reconnect: () => transports[0]?.reconnect(),
    addNode: (node) => admin.addNode(node),
    labelNode: async (name, [key, value]) => {
      await admin.request('PATCH', `/api/v1/nodes/${name}`, {
        metadata: { labels: { [key]: value } },
      });
    },
    removeNode: async (name) => {
      await admin.request('DELETE', `/api/v1/nodes/${name}`);
    },
    addPod: (name, nodeName) => admin.addPod(name, nodeName),
    protectPod: async (pod) => {
      await admin.protect(pod);
    },
    addNamespace: async (name, labels) => {
      await admin.request('POST', '/api/v1/namespaces', { metadata: { name, labels } });
    },
    attachVolume: (nodeName, claim) => admin.attachVolume(nodeName, claim),
    removeLease: async (name) => {
      await admin.request('DELETE', `${LEASES}/pvescaler-${name}`);
    },
    tokens: () => admin.tokens(),
    events: (node) => admin.events(node),
    cleanup: async () => {
      for (const one of clusters) await one.close();
      await adminTransport.close();
      await server.cleanup();
    },
  };
}
