// SPDX-License-Identifier: Apache-2.0
import type { Labels } from '../model/labels.ts';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { type AgentStep, agentSteps } from './agent-steps.ts';
import { extrasProblem, loginProblem, machineProblem } from './check-guest.ts';
import { networkProblem } from './check-network.ts';
import { firstBootOf } from './first-boot.ts';
import type { SeedFiles } from './iso9660/seed-iso.ts';
import { metaDataOf } from './meta-data.ts';
import { networkConfigOf } from './network-config.ts';
import { type Registration, registrationOf } from './registration.ts';
import type { SeedInput } from './seed-input.ts';
import { userDataOf } from './user-data.ts';

export interface RenderedSeed {
  readonly metaData: string;
  readonly userData: string;
  readonly networkConfig: string;
  /** To be set by somebody else, and the startup taint to be taken away after. */
  readonly labelsToPatch: Labels;
  /** Empty when the join comes from user-data. */
  readonly agentSteps: readonly AgentStep[];
  readonly registration: Registration;
}

export function renderSeed(input: SeedInput): Parsed<RenderedSeed> {
  const problem = problemOf(input);
  if (problem !== undefined) return refused(problem);
  const registration = registrationOf(input.machine, input.pool);
  if (!registration.ok) return registration;
  const firstBoot = firstBootOf(input, registration.value);
  if (!firstBoot.ok) return firstBoot;
  const steps = agentSteps(firstBoot.value.filesByAgent);
  if (!steps.ok) return steps;
  const user = userDataOf(input, firstBoot.value);
  if (!user.ok) return user;
  return accepted({
    metaData: metaDataOf(input.machine),
    userData: user.value,
    networkConfig: networkConfigOf(input.network),
    labelsToPatch: registration.value.labelsToPatch,
    agentSteps: steps.value,
    registration: registration.value,
  });
}

/** The documents by the names that cloud-init looks for. */
export function seedFiles({ metaData, userData, networkConfig }: RenderedSeed): SeedFiles {
  return { 'meta-data': metaData, 'user-data': userData, 'network-config': networkConfig };
}

function problemOf({ machine, login, network, join }: SeedInput): string | undefined {
  return (
    machineProblem(machine) ?? loginProblem(login) ?? networkProblem(network) ?? extrasProblem(join)
  );
}
