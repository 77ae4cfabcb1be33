// SPDX-License-Identifier: Apache-2.0
// VM ids of a region and static addresses of its pools: enough for all machines that the limits allow.
import type { PoolConfig } from '../config/index.ts';
import { countFreeAddresses } from '../placement/index.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import type { RegionInspector } from '../ports/inspection.ts';
import { type Check, failure, type Outcome, ok, warning } from './check.ts';
import type { RegionReader } from './region-reader.ts';

export function vmIdCheck(reader: RegionReader): Check {
  return {
    name: 'vm-ids',
    group: reader.group,
    run: () => reader.withView((view) => judgeVmIds(reader, view)),
  };
}

function judgeVmIds({ region, pools }: RegionReader, { vms, takenVmIds }: RegionView): Outcome {
  const { from, to } = region.vmIds;
  const isInRange = (id: number) => from <= id && id <= to;
  const [managedTag = ''] = region.tags;
  const own = vms.filter(({ vmId, tags }) => isInRange(vmId) && tags.includes(managedTag)).length;
  const taken = takenVmIds.filter(isInRange).length - own;
  const usable = to - from + 1 - taken;
  const wanted = pools.reduce((sum, { limits }) => sum + limits.max, 0);
  const range = `${from}-${to}`;
  const fix = `Widen proxmox.${region.name}.vmIds.`;
  if (usable <= 0) return failure(`all ids of ${range} belong to other VMs`, fix);
  if (usable < wanted) {
    return warning(
      `${range} has ${usable} ids for machines, and the pools allow ${wanted} machines`,
      fix,
    );
  }
  return ok(
    wanted === 0
      ? `${usable} of ${range} can be used`
      : `${usable} of ${range} for at most ${wanted} machines of pools`,
  );
}

export function addressChecks(reader: RegionReader, now: () => number): readonly Check[] {
  return reader.pools.filter(hasStaticAddresses).map((pool) => ({
    name: 'addresses',
    group: reader.group,
    subject: `pool ${pool.name}`,
    run: (signal) =>
      reader.withView(async (view, inspector) =>
        judgeAddresses(pool, {
          taken: await readTaken(reader, { view, inspector, signal }),
          now: now(),
        }),
      ),
  }));
}

function hasStaticAddresses({ network }: PoolConfig): boolean {
  return network.v4.kind === 'static' || network.v6.kind === 'static';
}

interface TakenAddresses {
  /** By VMs that pvescaler does not manage. */
  readonly taken: readonly string[];
  readonly now: number;
}

function judgeAddresses(pool: PoolConfig, { taken, now }: TakenAddresses): Outcome {
  const { v4, v6 } = pool.network;
  const { max } = pool.limits;
  const { count } = countFreeAddresses({ v4, v6, taken, held: [], now }, max);
  const fix = `Widen network.ip.pool of pool ${pool.name}, or lower its limits.max.`;
  if (count === 0) return failure('other VMs have every address of the pool', fix);
  return count < max
    ? warning(`there are addresses for ${count} of ${max} machines`, fix)
    : ok(`enough for ${max} machines`);
}

/** Static addresses in the configurations of VMs without the region's tag. */
async function readTaken(
  { region }: RegionReader,
  {
    view,
    inspector,
    signal,
  }: {
    readonly view: RegionView;
    readonly inspector: RegionInspector;
    readonly signal: AbortSignal;
  },
): Promise<readonly string[]> {
  const [managedTag = ''] = region.tags;
  const others = view.vms.filter(
    ({ tags, isTemplate }) => !tags.includes(managedTag) && !isTemplate,
  );
  const read = others.map((vm) =>
    inspector.hypervisor.vmConfig(vm, { signal }).then(
      ({ addresses }) => addresses,
      // A VM on a host that is down: its addresses are unknown here, and the engine waits for it.
      () => [],
    ),
  );
  return (await Promise.all(read)).flat();
}
