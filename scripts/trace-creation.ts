// SPDX-License-Identifier: Apache-2.0
// Prints which files and functions of src/ run between NodeGroupIncreaseSize and a Ready node, by V8 coverage of one
// machine's life. Two runs are added up: the gRPC server and the fleet with a joining guest on fakes, and the fleet with
// the Proxmox client on the simulator and the SQLite store. Fakes, simulators and generated code do not count.
//
//   npm run trace -- [--files] [--json]
import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CurrentSettings, serveExternalGrpc } from '../src/externalgrpc/index.ts';
import { createFleet } from '../src/fleet/index.ts';
import {
  aJoiningPool,
  aJoiningTestFleet,
  joiningSettings,
} from '../src/fleet/testing/joining-test-fleet.ts';
import { aPool, aRegion, REGION, someSettings } from '../src/fleet/testing/settings.ts';
import { onePass } from '../src/fleet/testing/test-fleet.ts';
import { RECONCILE_LEASE } from '../src/model/lease.ts';
import { SeededRandom } from '../src/ports/fakes/seeded-random.ts';
import { openSqliteStore } from '../src/store/index.ts';
import { RpcClient } from '../test/interop/client.ts';
import { aGroup } from '../test/interop/test-server.ts';
import { simulatedRegion, threeHostCluster } from '../test/proxmox/simulated-region.ts';

const root = join(import.meta.dirname, '..');
const MAX_PASSES = 200;
const NOT_COUNTED = /^src\/sim\/|\/(fakes|testing|gen)\//;

interface TracedFile {
  readonly path: string;
  readonly functions: readonly string[];
}

async function traceGrpcToReady(): Promise<void> {
  const site = aJoiningTestFleet(joiningSettings());
  await onePass(site.fleet, site);
  const server = await serveExternalGrpc({
    fleet: site.fleet,
    settings: new CurrentSettings(
      {
        pools: [aGroup(aJoiningPool())],
        pricing: { vcpuHour: 0.01, memoryGiBHour: 0.002 },
        gpu: { label: 'autoscaler.proxmox/gpu', types: [] },
      },
      site.clock,
    ),
    listen: { host: '127.0.0.1', port: 0 },
    tls: undefined,
    insecure: true,
    expander: undefined,
    clock: site.clock,
    read: () => Promise.reject(new Error('no files here')),
    warn: () => undefined,
  });
  const client = new RpcClient(`127.0.0.1:${server.port}`, 'c.proto');
  await client.call('NodeGroupIncreaseSize', { id: 'workers', delta: 1 });
  for (let pass = 0; pass < MAX_PASSES && !(await hasReady(site.fleet)); pass += 1) {
    await onePass(site.fleet, site);
  }
  if (!(await hasReady(site.fleet))) throw new Error('the machine on the fakes is not ready');
  client.close();
  const closing = server.close();
  await site.clock.advance(10_000);
  await closing;
}

async function traceProxmoxToReady(): Promise<void> {
  const site = simulatedRegion({ cluster: threeHostCluster() }, { region: REGION });
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-trace-'));
  const random = new SeededRandom(1);
  const { clock, hypervisor } = site;
  const store = await openSqliteStore({ path: join(folder, 'state.db'), clock, random });
  const storage = { images: 'local', seeds: 'local', disks: ['local-lvm'] };
  const settings = someSettings([aPool()], { regions: { [REGION]: aRegion({ storage }) } });
  const hypervisors = new Map([[REGION, hypervisor]]);
  const fleet = createFleet({ clock, random, store, hypervisors, settings });
  await fleet.scaleTo('workers', 1, { by: 'trace', reason: 'one machine' });
  const request = { name: RECONCILE_LEASE, holder: 'trace', durationMs: 3_600_000 };
  const lease = await store.leases.acquire(request);
  for (let pass = 0; pass < MAX_PASSES && !(await hasReady(fleet)); pass += 1) {
    await site.settled(fleet.reconcileOnce(lease));
    await clock.advance(1_000);
  }
  if (!(await hasReady(fleet))) throw new Error('the machine on the simulator is not ready');
  await store.close();
  rmSync(folder, { recursive: true });
}

async function hasReady(fleet: Pick<ReturnType<typeof createFleet>, 'status'>): Promise<boolean> {
  return (await fleet.status()).machines.some(({ phase }) => phase === 'ready');
}

async function trace(work: () => Promise<void>): Promise<readonly TracedFile[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return result
    .filter(({ url }) => url.startsWith('file:'))
    .map(({ url, functions }) => ({
      path: relative(root, fileURLToPath(url)),
      functions: functions
        .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
        .map(
          ({ functionName, ranges }) => functionName || `(anonymous at ${ranges[0]?.startOffset})`,
        ),
    }))
    .filter(({ path, functions }) => path.startsWith('src/') && functions.length > 0)
    .filter(({ path }) => !NOT_COUNTED.test(path))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

const files = await trace(async () => {
  await traceGrpcToReady();
  await traceProxmoxToReady();
});
const functions = files.reduce((sum, file) => sum + file.functions.length, 0);
if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ files: files.length, functions, traced: files }, undefined, 2));
} else {
  const folders = Map.groupBy(files, ({ path }) =>
    path
      .split('/')
      .slice(0, path.startsWith('src/fleet/') ? 3 : 2)
      .join('/'),
  );
  for (const [folder, own] of folders) {
    const count = own.reduce((sum, file) => sum + file.functions.length, 0);
    console.log(
      `${String(own.length).padStart(5)} files ${String(count).padStart(6)} functions  ${folder}`,
    );
    if (process.argv.includes('--files'))
      for (const { path } of own) console.log(`        ${path}`);
  }
  console.log(
    `${String(files.length).padStart(5)} files ${String(functions).padStart(6)} functions  in all`,
  );
}
