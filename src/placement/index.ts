// SPDX-License-Identifier: Apache-2.0
// Where does the next machine go, and why not elsewhere? Which VM id, name and addresses does it get?
//
// Owns the arithmetic of hosts and storages by allocation, the strategies, and what may be given out again and
// when. Every refusal carries its reason and its numbers. Must not know Proxmox, Kubernetes, the store or the
// clock: facts and the time come as values, decisions go back as values. Start reading at `hosts/choose-host.ts`.

export { type AddressSpan, parseAddressSpan } from './addresses/address.ts';
export {
  type AddressChoice,
  type AddressRequest,
  chooseAddresses,
  countAddresses,
  type FamilyRule,
} from './addresses/choose-addresses.ts';
export { COOL_DOWN_MS } from './cool-down.ts';
export { chooseHost } from './hosts/choose-host.ts';
export type {
  Decision,
  HostReason,
  NotPlaced,
  Placed,
  Refusal,
  RefusalCode,
  RefusalReason,
} from './hosts/decision.ts';
export {
  DISK_IN_THE_MAKING,
  type RegionFacts,
  type Reservation,
  reservationOf,
  reservationsOf,
  type VmFacts,
} from './hosts/facts.ts';
export { type FreeSlots, freeSlots } from './hosts/free-slots.ts';
export { HostLedger } from './hosts/host-ledger.ts';
export type {
  HostFilter,
  PlacementRequest,
  PlacementRules,
  Source,
  Strategy,
  Template,
} from './hosts/request.ts';
export { chooseName, type NameRequest, nameFor } from './machine-name.ts';
export {
  chooseVmId,
  highestTaken,
  idHoldOf,
  idsOfNodes,
  laterFirst,
  nextFreeVmId,
  type VmIdChoice,
  type VmIdRequest,
} from './vm-id.ts';
