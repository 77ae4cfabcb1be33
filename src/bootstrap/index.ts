// SPDX-License-Identifier: Apache-2.0
// Everything that turns a VM into a node: the cloud-init documents of its first boot, the join recipe, and the
// seed ISO that contains both. Defines all files written into a guest and how its Node registers. Must not know
// how the bytes reach the guest, where a token comes from, or what time it is. Start reading at render-seed.ts.
// A new join method is a file in recipes/.

export { recipeFor } from './first-boot.ts';
export { JOIN_UNIT } from './guest-file.ts';
export { buildSeedIso, type SeedFileName, type SeedFiles } from './iso9660/seed-iso.ts';
export type { JoiningNode, JoinPlan } from './recipes/join-plan.ts';
export { buildRegistration, type Registration, STARTUP_TAINT, VMID_LABEL } from './registration.ts';
export type { AgentStep } from './render-seed.ts';
export { type RenderedSeed, renderSeed, toSeedFiles } from './render-seed.ts';
export type * from './seed-input.ts';
export {
  parseTemplateReport,
  READ_REPORT,
  type TemplateBuild,
} from './template-build.ts';
