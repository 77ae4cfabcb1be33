// SPDX-License-Identifier: Apache-2.0
// Exports of schema version 1 have a record of each static address. Only a machine that is over, and whose VM was left alone,
// needs it: the record of every other machine has its addresses. The migration in store/schema.ts does the same.

type Json = Readonly<Record<string, unknown>>;

/** The records without addresses; a machine whose VM was left alone holds them itself. */
export function upgradeAddresses(records: unknown): Json {
  const { addresses, ...others } = asJson(records);
  const machines: Record<string, unknown> = { ...asJson(others['machines']) };
  for (const held of Object.values(asJson(addresses)).map(asJson)) {
    if (held['releasedAt'] !== undefined || held['vmId'] === undefined) continue;
    const id = String(held['machine']);
    const machine = machines[id] === undefined ? machineOf(held) : asJson(machines[id]);
    machines[id] = withLeftVm(machine, held);
  }
  return { ...others, ...(others['machines'] !== undefined && { machines }) };
}

function withLeftVm(machine: Json, { vmId, address }: Json): Json {
  const { phase } = machine;
  const placement = asJson(machine['placement']);
  if ((phase !== 'gone' && phase !== 'failed') || placement['vmId'] !== vmId) return machine;
  const addresses: readonly unknown[] = Array.isArray(placement['addresses'])
    ? placement['addresses']
    : [];
  const isKnown = addresses.some((known) => String(known).split('/')[0] === address);
  return {
    ...machine,
    placement: { ...placement, addresses: isKnown ? addresses : [...addresses, address] },
    isVmLeft: true,
  };
}

/** Its record was removed before its address was. `configured` keeps its VM from being deleted as an orphan. */
function machineOf({ machine, pool, region, vmId, leasedAt }: Json): Json {
  return {
    id: machine,
    pool,
    phase: 'gone',
    phaseSince: leasedAt,
    requestedAt: leasedAt,
    size: { cpu: 0, memoryBytes: 0, diskBytes: 0 },
    placement: {
      region,
      host: '',
      vmId,
      name: `vm-${String(vmId)}`,
      diskStorage: '',
      addresses: [],
    },
    configured: true,
    attempts: 0,
  };
}

function asJson(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
