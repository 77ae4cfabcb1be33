// SPDX-License-Identifier: Apache-2.0
// `npm run demo`: the fleet, the Proxmox client and the database scale a pool 0 → 5 → 1 → 0 on a simulated Proxmox VE
// with three hosts. `-- --once` runs it at maximum speed. Exits with 0 only if no VM or seed is left behind.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createFleet, type Fleet } from '../src/fleet/index.ts';
import { aPool, aRegion, REGION, someSettings } from '../src/fleet/testing/settings.ts';
import { type Machine, shortMachineId } from '../src/model/machine.ts';

import { createProxmoxHypervisor } from '../src/proxmox/index.ts';
import { createProxmoxSim, defaultCluster, serveProxmoxSim } from '../src/sim/proxmox/index.ts';
import { openSqliteStore } from '../src/store/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../src/system/index.ts';

const isOnce = process.argv.includes('--once');
/** Factor by which the simulator is faster than real Proxmox VE: slow enough to watch, or limited by polling only. */
const speed = isOnce ? 500 : 8;
const GIB = 2 ** 30;
const POOL = 'workers';
const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const IMAGE_URL = 'https://images.example/noble-with-agent.img';
const TIMEOUT_MS = 120_000;

const settings = someSettings(
  [
    aPool({
      name: POOL,
      source: {
        kind: 'image',
        url: IMAGE_URL,
        format: 'qcow2',
        checksum: { algorithm: 'sha256', hex: SHA256 },
        verifyCertificates: true,
      },
      limits: { ...aPool().limits, max: 5 },
      provisionTimeoutMs: TIMEOUT_MS,
      deletion: { mode: 'shutdown', shutdownTimeoutMs: 30_000 },
    }),
  ],
  {
    cluster: systemRandom.uuid(),
    holder: 'demo',
    regions: {
      [REGION]: aRegion({
        storage: { images: 'local', seeds: 'shared', disks: ['local-lvm'] },
        limits: { createsPerHost: 1, createsPerStorage: 1 },
      }),
    },
    backoff: { initialMs: 1_000, maxMs: 10_000 },
    orphans: 'delete',
    reconcileMs: 1_000,
    busyMs: isOnce ? 10 : 100,
  },
);

const sim = createProxmoxSim({
  cluster: {
    ...defaultCluster(3),
    urls: [
      { url: IMAGE_URL, size: 600 * 2 ** 20, virtualSize: 3 * GIB, checksums: { sha256: SHA256 } },
    ],
  },
  clock: systemClock,
  random: systemRandom,
  speed,
});
const served = await serveProxmoxSim(sim, { listen: '127.0.0.1:0', tls: true });
console.log(`Simulated Proxmox VE ${sim.version} with 3 hosts listens on ${served.url}`);
const folder = await mkdtemp(join(tmpdir(), 'pvescaler-demo-'));
const store = await openSqliteStore({
  path: join(folder, 'state.db'),
  clock: systemClock,
  random: systemRandom,
});
const proxmox = createProxmoxHypervisor({
  region: REGION,
  endpoints: [served.url],
  credentials: {
    kind: 'token',
    id: 'scaler@pve!sim',
    secret: () => '00000000-0000-4000-8000-000000000001',
  },
  transport: await openHttpTransport({
    tls: { kind: 'fingerprints', sha256: [served.fingerprint ?? ''] },
  }),
  clock: systemClock,
  random: systemRandom,
});
const fleet = createFleet({
  store,
  hypervisors: new Map([[REGION, proxmox]]),
  clock: systemClock,
  random: systemRandom,
  settings,
});

/** VMs and seeds that still exist. The image stays, as it does on real storage. */
function listLeftovers(): readonly string[] {
  const { vms, volumes } = sim.inspect();
  return [
    ...vms.map(({ id }) => `VM ${id}`),
    ...volumes.filter(({ content }) => content !== 'import').map(({ id }) => id),
  ];
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/** Prints one line per machine and phase; on a terminal also a spinner with the number of machines per phase. */
class Progress {
  readonly #phases = new Map<string, string>();
  readonly #started = performance.now();
  #frame = 0;

  show(machines: readonly Machine[]): void {
    for (const { id, phase, placement } of machines) {
      if (this.#phases.get(id) === phase) continue;
      this.#phases.set(id, phase);
      const where = placement === undefined ? '' : ` VM ${placement.vmId} on ${placement.host}`;
      this.#line(
        `${this.#clock()}  ${(placement?.name ?? shortMachineId(id)).padEnd(16)} ${phase.padEnd(12)}${where}`,
      );
    }
    if (!process.stdout.isTTY) return;
    this.#frame += 1;
    const counts = new Map<string, number>();
    for (const { phase } of machines) counts.set(phase, (counts.get(phase) ?? 0) + 1);
    const summary = [...counts].map(([phase, count]) => `${count} ${phase}`).join(', ');
    process.stdout.write(`\r\u001b[K${FRAMES[this.#frame % FRAMES.length]} ${summary}`);
  }

  /** Removes the spinner. */
  end(): void {
    if (process.stdout.isTTY) process.stdout.write('\r\u001b[K');
  }

  #line(text: string): void {
    process.stdout.write(`${process.stdout.isTTY ? '\r\u001b[K' : ''}${text}\n`);
  }

  #clock(): string {
    return `${((performance.now() - this.#started) / 1_000).toFixed(1).padStart(6)} s`;
  }
}

async function scale(to: number, progress: Progress, driven: Fleet): Promise<void> {
  console.log(`\n${process.stdout.isTTY ? '\r\u001b[K' : ''}scale ${POOL} to ${to}`);
  await driven.scaleTo(POOL, to, { by: 'demo', reason: 'requested by the demo' });
  const deadline = performance.now() + TIMEOUT_MS;
  while (performance.now() < deadline) {
    const { machines, pools, openIntents } = await driven.status();
    progress.show(machines);
    const [pool] = pools;
    const failed = machines.find(({ phase }) => phase === 'failed');
    if (failed !== undefined)
      throw new Error(`machine ${failed.id} failed: ${failed.failure?.message}`);
    const isSettled = openIntents === 0 && pool?.ready === to && pool.target === to;
    if (isSettled && pool.deleting === 0) return progress.end();
    await systemClock.sleep(isOnce ? 10 : 80);
  }
  throw new Error(`pool ${POOL} did not reach ${to} machines within ${TIMEOUT_MS / 1_000} s`);
}

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
const driving = fleet.runDriver({ signal: stop.signal });
try {
  const progress = new Progress();
  for (const to of [5, 1, 0]) await scale(to, progress, fleet);
} finally {
  stop.abort();
  await driving;
  await proxmox.close();
  await store.close();
  await served.close();
  await rm(folder, { recursive: true, force: true });
}
const requestCount = [...sim.inspect().requests.values()].reduce((sum, count) => sum + count, 0);
const leftovers = listLeftovers();
const isClean = leftovers.length === 0;
console.log(
  `\n${requestCount} requests to Proxmox VE. ${isClean ? 'Nothing was left behind.' : `LEFT BEHIND: ${leftovers.join(', ')}`}`,
);
process.exitCode = isClean ? 0 : 1;
