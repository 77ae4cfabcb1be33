// SPDX-License-Identifier: Apache-2.0
// The client and the simulator in one process, on virtual time, without sockets.
import type { Clock } from '../../src/ports/clock.ts';
import { Unreachable } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { type ScriptedPeer, ScriptedTransport } from '../../src/ports/fakes/scripted-transport.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { CreateVmOrder, Hypervisor, VmRef } from '../../src/ports/hypervisor.ts';
import {
  type Credentials,
  createProxmoxHypervisor,
  type ProxmoxOptions,
} from '../../src/proxmox/index.ts';
import { checkRequest } from '../../src/proxmox/testing/check-request.ts';
import {
  type ClusterDescription,
  createProxmoxSim,
  defaultCluster,
  type ProxmoxSim,
  SimConnectionError,
  type SimOptions,
} from '../../src/sim/proxmox/index.ts';

export const IMAGE = {
  url: 'https://images.example/noble-with-agent.img',
  sha256: 'ab'.repeat(32),
};
const TOKEN_ID = 'scaler@pve!sim';
const TOKEN_SECRET = '00000000-0000-4000-8000-000000000001';
export const CREDENTIALS: Credentials = {
  kind: 'token',
  id: TOKEN_ID,
  secret: () => TOKEN_SECRET,
};
export const TEMPLATE = { vmId: 9_000, host: 'pve1' };

export const CONTAINER = { vmId: 8_000, cpus: 2, memoryBytes: 2 ** 31 };

export interface SimulatedRegion {
  readonly sim: ProxmoxSim;
  readonly clock: VirtualClock;
  readonly transport: ScriptedTransport;
  readonly hypervisor: Hypervisor;
  readonly settled: <T>(work: Promise<T>) => Promise<T>;
}

export function threeHostCluster(): ClusterDescription {
  const cluster = defaultCluster(3);
  return {
    ...cluster,
    urls: [
      {
        url: IMAGE.url,
        size: 600 * 2 ** 20,
        virtualSize: 3 * 2 ** 30,
        checksums: { sha256: IMAGE.sha256 },
      },
    ],
    containers: [
      {
        id: CONTAINER.vmId,
        host: 'pve2',
        cpus: CONTAINER.cpus,
        memory: CONTAINER.memoryBytes,
        running: true,
      },
    ],
    vms: [
      {
        id: TEMPLATE.vmId,
        host: TEMPLATE.host,
        template: true,
        image: 'noble-with-agent.qcow2',
        config: {
          name: 'base',
          tags: 'base',
          cores: '1',
          memory: '1024',
          agent: '1',
          scsihw: 'virtio-scsi-single',
          scsi0: 'local-lvm:3',
          net0: 'virtio,bridge=vmbr0',
          boot: 'order=scsi0',
          smbios1: 'uuid=0a1b2c3d-9999-4000-8000-000000000000',
        },
      },
    ],
  };
}

export function vmOrder(vmId: number, host = 'pve1'): CreateVmOrder {
  return {
    vmId,
    host,
    identity: {
      name: `vm-${vmId}`,
      description: 'marker',
      tags: ['t'],
      smbiosUuid: `0a1b2c3d-0000-4000-8000-${String(vmId).padStart(12, '0')}`,
    },
    hardware: {
      cpus: 1,
      memoryBytes: 2 ** 30,
      balloonBytes: 0,
      networks: [{ model: 'virtio', bridge: 'vmbr0' }],
      bootFrom: 'disk',
      options: {},
    },
    disk: { storage: 'local-lvm', bytes: 2 ** 32 },
  };
}

/** Sets options of a VM as a user of the API would, without the client. */
export async function setVmOptions(
  { sim }: SimulatedRegion,
  { vmId, host }: VmRef,
  options: Readonly<Record<string, string>>,
): Promise<void> {
  const body = new TextEncoder().encode(new URLSearchParams(options).toString());
  const response = await sim.handle({
    method: 'PUT',
    target: `/api2/json/nodes/${host}/qemu/${vmId}/config`,
    headers: {
      authorization: `PVEAPIToken=${TOKEN_ID}=${TOKEN_SECRET}`,
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': String(body.length),
    },
    body,
    host,
  });
  if (response.status !== 200) throw new Error(`VM ${vmId}: status ${response.status}`);
}

type RegionOptions = Partial<Omit<SimOptions, 'clock'>> & {
  /** Several regions may share a clock. */
  readonly clock?: VirtualClock;
  /** The clock of the hosts, where their wall clock differs from the client's. */
  readonly hostClock?: Clock;
};

export function simulatedRegion(
  options: RegionOptions = {},
  client: Partial<ProxmoxOptions> = {},
  checkedRequests: 'all' | 'changes' = 'all',
): SimulatedRegion {
  const { clock = new VirtualClock(), hostClock = clock, ...simOptions } = options;
  const random = new SeededRandom(11);
  const sim = createProxmoxSim({
    cluster: threeHostCluster(),
    random,
    ...simOptions,
    clock: hostClock,
  });
  const transport = new ScriptedTransport(simPeer(sim, checkedRequests), { clock });
  const hypervisor = createProxmoxHypervisor({
    region: 'sim',
    endpoints: ['https://pve1:8006', 'https://pve2:8006', 'https://pve3:8006'],
    credentials: CREDENTIALS,
    transport,
    clock,
    random: new SeededRandom(12),
    ...client,
  });
  return { sim, clock, transport, hypervisor, settled: (work) => advanceUntilSettled(clock, work) };
}

/** Checking requests is slow: tests with many requests check only those that change something ('changes'). */
export function simPeer(sim: ProxmoxSim, checkedRequests: 'all' | 'changes'): ScriptedPeer {
  return async (request) => {
    if (checkedRequests === 'all' || request.method !== 'GET') checkRequest(request);
    const { method, url, headers, bytes } = request;
    try {
      return await sim.handle({
        method,
        target: `${url.pathname}${url.search}`,
        headers: { 'content-length': String(bytes.length), ...headers },
        body: bytes,
        host: url.hostname,
      });
    } catch (error) {
      if (!(error instanceof SimConnectionError)) throw error;
      throw new Unreachable('PVE_UNREACHABLE', `${url.host}: ${error.code}`, {
        facts: { requestSent: error.code !== 'ECONNREFUSED' },
      });
    }
  };
}
