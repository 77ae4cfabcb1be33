// SPDX-License-Identifier: Apache-2.0
// What a pool is made of: its expected nodes (labels, taints, capacity, learned allocatable), its limits and its members.
// Pure: no clock, no I/O. Start reading at template-node.ts.
export { type MemberHealth, sortForDeletion } from './deletion-order.ts';
export {
  checkLimits,
  countAllowed,
  type GrowthRequest,
  type LimitRefusal,
  listMembers,
  type Member,
  maxMachines,
  type PoolLimits,
} from './limits.ts';
export { type NodeGroup, nodeGroupsOf } from './node-groups.ts';
export { pricePerHour, type ResourcePrices, resourcePrice } from './price.ts';
export {
  describeDifference,
  type ReservedModel,
  reservedModel,
  sizeKey,
  sizeOfKey,
} from './resources.ts';
export { INSTANCE_TYPE_LABEL, type TemplateNode, templateNode } from './template-node.ts';
