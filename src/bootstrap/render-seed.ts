// SPDX-License-Identifier: Apache-2.0
import type { Labels } from '../model/labels.ts';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { type AgentStep, planAgentSteps } from './agent-steps.ts';
import { extrasProblem, loginProblem, machineProblem } from './check-guest.ts';
import { networkProblem } from './check-network.ts';
import { planFirstBoot } from './first-boot.ts';
import { formatYaml } from './format-yaml.ts';
import type { SeedFiles } from './iso9660/seed-iso.ts';
import { renderNetworkConfig } from './network-config.ts';
import { buildRegistration, type Registration } from './registration.ts';
import type { MachineInput, SeedInput } from './seed-input.ts';
import { renderUserData } from './user-data.ts';

export interface RenderedSeed {
  readonly metaData: string;
  readonly userData: string;
  readonly networkConfig: string;
  /** To be patched on the Node. The startup taint is removed afterwards. */
  readonly labelsToPatch: Labels;
  /** Empty if the join is in the user-data. */
  readonly agentSteps: readonly AgentStep[];
  readonly registration: Registration;
}

export function renderSeed(input: SeedInput): Parsed<RenderedSeed> {
  const problem = seedInputProblem(input);
  if (problem !== undefined) return refused(problem);
  const registration = buildRegistration(input.machine, input.pool);
  if (!registration.ok) return registration;
  const firstBoot = planFirstBoot(input, registration.value);
  if (!firstBoot.ok) return firstBoot;
  const steps = planAgentSteps(firstBoot.value.filesByAgent);
  if (!steps.ok) return steps;
  const user = renderUserData(input, firstBoot.value);
  if (!user.ok) return user;
  return accepted({
    metaData: renderMetaData(input.machine),
    userData: user.value,
    networkConfig: renderNetworkConfig(input.network),
    labelsToPatch: registration.value.labelsToPatch,
    agentSteps: steps.value,
    registration: registration.value,
  });
}

/** The machine id is the instance id: cloud-init runs again on a disk that was copied to another machine. */
function renderMetaData({ id, name }: MachineInput): string {
  return formatYaml({ 'instance-id': id, 'local-hostname': name });
}

/** The documents by the file names that cloud-init reads. */
export function toSeedFiles({ metaData, userData, networkConfig }: RenderedSeed): SeedFiles {
  return { 'meta-data': metaData, 'user-data': userData, 'network-config': networkConfig };
}

function seedInputProblem({ machine, login, network, join }: SeedInput): string | undefined {
  return (
    machineProblem(machine) ?? loginProblem(login) ?? networkProblem(network) ?? extrasProblem(join)
  );
}
