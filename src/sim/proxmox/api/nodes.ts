// SPDX-License-Identifier: Apache-2.0
// /nodes, the status and network of a host, /version.
import type { Call, Handlers } from '../core.ts';
import { formatNode, usedMemoryBytes } from './node-stats.ts';

function getVersion(call: Call): Record<string, string> {
  const { release } = call.state.hosts.get(call.host) ?? {};
  if (release !== undefined) {
    const short = release.split(/[.-]/).slice(0, 2).join('.');
    return { version: release, release: short, repoid: '2a5fa54a8503f96d' };
  }
  return call.state.version === '8.4'
    ? { version: '8.4.1', release: '8.4', repoid: '2a5fa54a8503f96d' }
    : { version: '9.2.11', release: '9.2', repoid: '7e5d6c4b3a291807' };
}

function listNodes(call: Call): unknown {
  return [...call.state.hosts.values()].map((host) => {
    const path = `/nodes/${host.name}`;
    const withStats = call.isAllowed({ path, privileges: ['Sys.Audit'] });
    // Chosen when it is first read. No host of the simulator has a certificate of its own.
    host.fingerprint ??= formatFingerprint(call.state.random.bytes(32));
    return { ...formatNode(call.core, host, withStats), ssl_fingerprint: host.fingerprint };
  });
}

function formatFingerprint(digest: Uint8Array): string {
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0').toUpperCase()).join(':');
}

function nodeStatus(call: Call): unknown {
  const host = call.state.hosts.get(call.host);
  const total = host?.memory ?? 0;
  const used = host === undefined ? 0 : usedMemoryBytes(call.core, host);
  const kernel = call.state.version === '8.4' ? '6.8.12-9-pve' : '6.17.2-1-pve';
  return {
    uptime: Math.floor(call.state.clock.monotonic() / 1000) + 86_400,
    cpu: 0.02,
    wait: 0,
    idle: 0,
    loadavg: ['0.10', '0.12', '0.09'],
    pveversion: `pve-manager/${getVersion(call)['version']}/${getVersion(call)['repoid']}`,
    kversion: `Linux ${kernel} #1 SMP PREEMPT_DYNAMIC`,
    'current-kernel': { sysname: 'Linux', release: kernel, version: '#1 SMP', machine: 'x86_64' },
    'boot-info': { mode: 'efi', secureboot: 0 },
    cpuinfo: {
      cpus: host?.cpus ?? 0,
      cores: host?.cpus ?? 0,
      sockets: 1,
      model: 'Simulated CPU',
      mhz: '3000.000',
      hvm: '1',
      user_hz: 100,
      flags: 'fpu vme lm',
    },
    memory: { total, used, free: total - used, available: total - used },
    swap: { total: 0, used: 0, free: 0 },
    rootfs: { total: 96 * 2 ** 30, used: 8 * 2 ** 30, free: 88 * 2 ** 30, avail: 83 * 2 ** 30 },
    ksm: { shared: 0 },
  };
}

/** Without Sys.Audit on the host, lists only the bridges with SDN privileges. */
function listNetwork(call: Call): unknown {
  const all = call.isAllowed({
    path: `/nodes/${call.host}`,
    privileges: ['Sys.Audit', 'Sys.Modify'],
    any: true,
  });
  const type = call.optional('type');
  const includesBridges = type === undefined || /bridge$/i.test(type) || type === 'include_sdn';
  const bridges = call.state.hosts.get(call.host)?.bridges ?? [];
  const rows: Record<string, unknown>[] = bridges
    .filter(
      ({ name }) =>
        all ||
        call.isAllowed({
          path: `/sdn/zones/localnetwork/${name}`,
          privileges: ['SDN.Audit', 'SDN.Use'],
          any: true,
        }),
    )
    .map((bridge, index) => ({
      iface: bridge.name,
      type: 'bridge',
      active: 1,
      autostart: 1,
      method: index === 0 ? 'static' : 'manual',
      method6: 'manual',
      families: ['inet'],
      priority: index + 3,
      bridge_ports: `eno${index + 1}`,
      bridge_stp: 'off',
      bridge_fd: '0',
      ...(bridge.vlanAware === true && {
        bridge_vlan_aware: 1,
        bridge_vids: bridge.vlans ?? '2-4094',
      }),
    }));
  const cards = bridges.map((_, index) => ({
    iface: `eno${index + 1}`,
    type: 'eth',
    active: 1,
    exists: 1,
    method: 'manual',
    method6: 'manual',
    families: ['inet'],
    priority: 2,
  }));
  const includesCards = all && (type === undefined || type === 'eth' || type === 'include_sdn');
  return [...(includesCards ? cards : []), ...(includesBridges ? rows : [])];
}

const NODE_INDEX = [
  'ceph',
  'apt',
  'qemu',
  'lxc',
  'storage',
  'network',
  'tasks',
  'status',
  'version',
  'time',
  'dns',
  'hardware',
];

export const NODE_HANDLERS: Handlers = {
  'GET /version': getVersion,
  'GET /nodes': listNodes,
  'GET /nodes/{node}': () => NODE_INDEX.map((name) => ({ name })),
  'GET /nodes/{node}/status': nodeStatus,
  'GET /nodes/{node}/version': getVersion,
  'GET /nodes/{node}/network': listNetwork,
  'GET /nodes/{node}/time': (call) => {
    const time = call.state.nowSeconds() + (call.state.hosts.get(call.host)?.clockSkew ?? 0);
    return { timezone: 'UTC', time, localtime: time };
  },
  'GET /nodes/{node}/dns': () => ({ search: 'example', dns1: '192.0.2.1' }),
  'GET /nodes/{node}/config': () => ({ digest: 'da39a3ee5e6b4b0d3255bfef95601890afd80709' }),
};
