// SPDX-License-Identifier: Apache-2.0
// `npm run demo`: a simulated Proxmox VE on a loopback port, and the real client walking one VM through its
// life over HTTPS: image, create, boot, agent, delete. `-- --once` does the same as fast as it goes. Ends
// with exit code 0 only if nothing is left on the simulated site.
import { performance } from 'node:perf_hooks';
import { type MachineId, parseMachineId, shortMachineId } from '../src/model/machine-id.ts';
import { formatMarker } from '../src/model/marker.ts';
import { poolTag } from '../src/model/pool-name.ts';
import type { Hypervisor, TaskRef, VmRef } from '../src/ports/hypervisor.ts';
import { createProxmoxHypervisor, TaskFollower } from '../src/proxmox/index.ts';
import { createProxmoxSim, defaultCluster, serveProxmoxSim } from '../src/sim/proxmox/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../src/system/index.ts';

const isOnce = process.argv.includes('--once');
/** How much faster than a real Proxmox: slow enough to watch, or as fast as the polling allows. */
const speed = isOnce ? 500 : 6;
const GIB = 2 ** 30;
const IMAGE_URL = 'https://images.example/noble-with-agent.img';

const site = defaultCluster(3);
const sim = createProxmoxSim({
  cluster: { ...site, urls: [{ url: IMAGE_URL, size: 600 * 2 ** 20, virtualSize: 3 * GIB }] },
  clock: systemClock,
  random: systemRandom,
  speed,
});
const before = JSON.stringify(remains());
const served = await serveProxmoxSim(sim, { listen: '127.0.0.1:0', tls: true });
console.log(`A simulated Proxmox VE ${sim.version} with 3 hosts listens on ${served.url}`);
console.log(`its certificate: ${served.fingerprint}\n`);

const transport = await openHttpTransport({
  tls: { kind: 'fingerprints', sha256: [served.fingerprint ?? ''] },
});
const proxmox: Hypervisor = createProxmoxHypervisor({
  region: 'lab',
  endpoints: [served.url],
  credentials: {
    kind: 'token',
    id: 'scaler@pve!sim',
    secret: () => '00000000-0000-4000-8000-000000000001',
  },
  transport,
  clock: systemClock,
  random: systemRandom,
});
const tasks = new TaskFollower(proxmox, systemClock);

/** What a run must not change: VMs and volumes of the site. */
function remains(): unknown {
  const { vms, volumes } = sim.inspect();
  return { vms: vms.map(({ id }) => id), volumes: volumes.map(({ id }) => id) };
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** One line per step; on a terminal it turns while the step is under way. */
async function step<T>(title: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const took = () => {
    const seconds = (performance.now() - started) / 1000;
    return isOnce ? `${seconds.toFixed(1)} s` : `${Math.round(seconds * speed)} s on a real one`;
  };
  let frame = 0;
  const timer = process.stdout.isTTY
    ? setInterval(() => {
        frame += 1;
        process.stdout.write(`\r${FRAMES[frame % FRAMES.length]} ${title} (${took()}) `);
      }, 80)
    : undefined;
  try {
    const result = await work();
    clearInterval(timer);
    process.stdout.write(`${process.stdout.isTTY ? '\r' : ''}✓ ${title} (${took()})\n`);
    return result;
  } catch (error) {
    clearInterval(timer);
    process.stdout.write(`${process.stdout.isTTY ? '\r' : ''}✗ ${title}\n`);
    throw error;
  }
}

async function ended(task: TaskRef | undefined): Promise<void> {
  if (task === undefined) return;
  const { succeeded, message } = await tasks.follow(task, { timeoutMs: 600_000 });
  if (!succeeded) throw new Error(`task ${task.upid}: ${message}`);
}

function aMachineId(): MachineId {
  const id = parseMachineId(systemRandom.uuid());
  if (!id.ok) throw new Error(id.problem);
  return id.value;
}

async function guestIsUp(vm: VmRef): Promise<void> {
  while (!(await proxmox.guestIsUp(vm))) await systemClock.sleep(isOnce ? 20 : 250);
}

async function systemIsRunning(vm: VmRef): Promise<boolean> {
  const command = ['systemctl', 'is-system-running'];
  const { output } = await proxmox.guestExec(vm, { command, timeoutMs: 60_000 });
  return output.trim() === 'running';
}

/** The least loaded host by memory that VMs are configured with, as placement will do it. */
async function chooseHost(): Promise<string> {
  const { hosts, vms } = await proxmox.view();
  const taken = (host: string) =>
    vms.filter((vm) => vm.host === host).reduce((sum, vm) => sum + (vm.memoryBytes ?? 0), 0);
  const [best] = hosts
    .filter(({ online }) => online)
    .toSorted((a, b) => b.memoryBytes - taken(b.name) - (a.memoryBytes - taken(a.name)));
  if (best === undefined) throw new Error('no host is online');
  return best.name;
}

function createWorker(vm: VmRef): Promise<TaskRef> {
  const machine = aMachineId();
  return proxmox.createVm({
    ...vm,
    identity: {
      name: `worker-${shortMachineId(machine)}`,
      description: formatMarker({
        cluster: 'demo',
        pool: 'workers',
        machine,
        vmId: vm.vmId,
        createdAtSeconds: Math.floor(systemClock.now() / 1000),
        addresses: [],
      }),
      tags: ['pvescaler', poolTag('workers')],
      smbiosUuid: machine,
    },
    hardware: {
      cores: 2,
      memoryBytes: 4 * GIB,
      balloonBytes: 0,
      networks: [{ model: 'virtio', bridge: 'vmbr0' }],
      bootFrom: 'disk',
      options: { cpu: 'host' },
    },
    disk: {
      storage: 'local-lvm',
      bytes: 20 * GIB,
      importFrom: 'local:import/noble-with-agent.qcow2',
    },
  });
}

async function walk(): Promise<void> {
  const host = await step('look at the site, choose a host', chooseHost);
  const vm: VmRef = { host, vmId: 1250 };
  await step(`download the image to ${host}, once`, async () =>
    ended(
      await proxmox.downloadImage({
        host,
        storage: 'local',
        url: IMAGE_URL,
        fileName: 'noble-with-agent.qcow2',
        verifyCertificates: true,
      }),
    ),
  );
  await step(`create VM ${vm.vmId}: id, name, marker and SMBIOS UUID in one call`, async () =>
    ended(await createWorker(vm)),
  );
  await step('grow its disk to 20 GiB', async () =>
    ended(await proxmox.growDisk(vm, { slot: 'scsi0', bytes: 20 * GIB })),
  );
  await step('start it', async () => ended(await proxmox.startVm(vm)));
  await step('wait for the guest agent', () => guestIsUp(vm));
  await step('wait until its system is running, asked by a command in the guest', async () => {
    while (!(await systemIsRunning(vm))) await systemClock.sleep(isOnce ? 20 : 250);
  });
  const [network] = await proxmox.guestInterfaces(vm);
  console.log(`  it has the address ${network?.addresses.join(', ')}`);
  await step('shut it down', async () => ended(await proxmox.shutdownVm(vm, 60_000)));
  await step('destroy it with everything that belongs to it', async () =>
    ended(await proxmox.destroyVm(vm)),
  );
  await step('remove the image', () =>
    proxmox.deleteVolume(host, 'local:import/noble-with-agent.qcow2'),
  );
}

try {
  await walk();
} finally {
  await proxmox.close();
  await served.close();
}
const isClean = JSON.stringify(remains()) === before;
const calls = [...sim.inspect().requests.values()].reduce((sum, count) => sum + count, 0);
console.log(
  `\n${calls} requests. ${isClean ? 'Nothing is left behind.' : 'SOMETHING IS LEFT BEHIND.'}`,
);
process.exitCode = isClean ? 0 : 1;
