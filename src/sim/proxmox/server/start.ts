// SPDX-License-Identifier: Apache-2.0
// Starts a simulator for `pvescaler sim proxmox`: from a cluster description or the default cluster, with saved state.
import type { Clock } from '../../../ports/clock.ts';
import { InvalidConfig, InvalidRequest } from '../../../ports/errors.ts';
import type { Random } from '../../../ports/random.ts';
import type { SavedState } from '../control/saved-state.ts';
import type { OpenConnection } from '../guest/guest.ts';
import { createProxmoxSim, type ProxmoxSim } from '../sim.ts';
import { type ClusterDescription, defaultCluster } from '../state/cluster-description.ts';
import { parseClusterDescription } from '../state/parse-cluster-file.ts';
import { networkUrlSource, serveProxmoxSim } from './serve.ts';
import { type SshServeOptions, serveSsh } from './serve-ssh.ts';

export interface StartOptions {
  /** Number of hosts when `cluster` is absent. */
  readonly hosts: number;
  /** The cluster description file. */
  readonly cluster?: { readonly path: string; readonly text: string };
  readonly version?: '8.4' | '9.2';
  readonly speed: number;
  readonly listen: string;
  readonly tls: boolean;
  /** Absent: the hosts have no SSH. */
  readonly ssh?: SshServeOptions;
  /** A result of `saveState`. */
  readonly state?: string;
  readonly clock: Clock;
  readonly random: Random;
  /** How simulated guests connect to the Kubernetes API server in their user-data. */
  readonly connect: OpenConnection;
}

/** Logins of the default cluster. They give access to nothing else. */
const DEFAULT_LOGINS = [
  'token scaler@pve!sim=00000000-0000-4000-8000-000000000001',
  "user root@pam, password 'simulated'",
];

export async function startProxmoxSim(options: StartOptions) {
  const { speed, version, state, listen, tls, clock, random, connect } = options;
  const cluster = readCluster(options);
  const sim = createProxmoxSim({
    cluster,
    clock,
    random,
    speed,
    urlSource: networkUrlSource(),
    connect,
    ...(version !== undefined && { version }),
  });
  if (state !== undefined) loadState(sim, state);
  const served = await serveProxmoxSim(sim, { listen, tls }).catch((cause: unknown) => {
    throw new InvalidRequest('REQUEST_INVALID', `cannot listen on ${listen}: ${String(cause)}`, {
      hint: 'Set another address with --listen, for instance 127.0.0.1:0 for any free port.',
      cause,
    });
  });
  const { ssh } = options;
  const hosts = cluster.hosts.map(({ name }) => name);
  const sshServers =
    ssh === undefined
      ? undefined
      : await serveSsh(sim, hosts, ssh).catch((cause: unknown) => {
          throw new InvalidRequest(
            'REQUEST_INVALID',
            `cannot listen on ${ssh.listen}: ${String(cause)}`,
            {
              hint: 'Set another address with --ssh-listen, for instance 127.0.0.1:0 for any free ports.',
              cause,
            },
          );
        });
  return {
    ...served,
    ssh: sshServers?.hosts,
    close: async () => {
      // Guests that joined a cluster would keep the process running.
      for (const host of hosts) sim.externalChanges.hostDown(host);
      await Promise.all([served.close(), sshServers?.close()]);
    },
    version: sim.version,
    hosts,
    credentials: options.cluster === undefined ? DEFAULT_LOGINS : [],
    saveState: () => JSON.stringify(sim.saveState()),
  };
}

function readCluster({ cluster, hosts }: StartOptions): ClusterDescription {
  if (cluster === undefined) return defaultCluster(hosts);
  const parsed = parseClusterDescription(cluster.text, cluster.path);
  if (parsed.ok) return parsed.cluster;
  throw new InvalidConfig('CONFIG_INVALID', parsed.problems.join('\n'), {
    hint: 'Correct the lines named in the message; docs/reference/simulated-cluster.md has the format.',
  });
}

function loadState(sim: ProxmoxSim, text: string): void {
  try {
    const state: SavedState = JSON.parse(text);
    sim.loadState(state);
  } catch (cause) {
    throw new InvalidConfig('CONFIG_INVALID', 'the state file was not written by this simulator', {
      hint: 'Set another file with --state, or delete this one to start with an empty cluster.',
      cause,
    });
  }
}
