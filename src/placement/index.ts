// SPDX-License-Identifier: Apache-2.0
// Decides which host, storage, VM id, name and addresses the next machine gets, and why the other hosts were
// refused.
//
// Contains the capacity arithmetic (by allocation) of hosts and storages, the placement strategies, and the
// cool-down of ids and addresses. Every refusal has a reason and numbers. Must not know Proxmox, Kubernetes,
// the store or the clock: it gets facts and the time as values and returns decisions as values. Start reading
// at `hosts/choose-host.ts`.

export { canonicalAddress } from './addresses/address.ts';
export {
  type AddressChoice,
  type AddressRequest,
  chooseAddresses,
  countFreeAddresses,
  type FamilyRule,
} from './addresses/choose-addresses.ts';
export { COOL_DOWN_MS } from './cool-down.ts';
export {
  chooseHost,
  comparePlaced,
  countFreeSlots,
  type FreeSlots,
  type HostHeadroom,
  listHeadrooms,
} from './hosts/choose-host.ts';
export {
  type HostDecision,
  type HostFilter,
  type HostReason,
  type HostRefusal,
  type NotPlaced,
  type Placed,
  type PlacementRequest,
  type PlacementRules,
  type RefusalCode,
  type RefusalReason,
  type Source,
  STRATEGIES,
  type Strategy,
  type Template,
} from './hosts/decision.ts';
export {
  DISK_PENDING_PHASES,
  type RegionFacts,
  type Reservation,
  reservationOf,
  reservationsOf,
  type VmFacts,
} from './hosts/facts.ts';
export { HostAllocations } from './hosts/host-allocations.ts';
export { chooseMachineName, type MachineNameRequest, pickFreeName } from './machine-name.ts';
export {
  chooseVmId,
  compareNewestFirst,
  highestTakenVmId,
  nextFreeVmId,
  type VmIdChoice,
  type VmIdRequest,
  vmIdHoldOf,
  vmIdsNamedByNodes,
} from './vm-id.ts';
