// SPDX-License-Identifier: Apache-2.0
// What makes a VM a node: the cloud-init documents of its first boot, the recipe by which it joins, and the
// bytes of the CD that carries both. Owns everything that is written into a guest and what its node says of
// itself; must not know how the bytes get there, where a token comes from, or what time it is. Start reading
// at render-seed.ts; a new way to join is a file in recipes/.
export type { AgentStep } from './agent-steps.ts';
export { type SeedFileName, type SeedFiles, seedIso } from './iso9660/seed-iso.ts';
export type { JoiningNode, JoinPlan } from './recipes/join-plan.ts';
export { recipeFor } from './recipes/recipe-for.ts';
export { type Registration, registrationOf, STARTUP_TAINT, VMID_LABEL } from './registration.ts';
export { type RenderedSeed, renderSeed, seedFiles } from './render-seed.ts';
export type * from './seed-input.ts';
