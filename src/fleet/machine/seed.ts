// SPDX-License-Identifier: Apache-2.0
// The content of a machine's seed ISO.
import {
  buildSeedIso,
  type FamilyInput,
  type JoinInput,
  type RenderedSeed,
  renderSeed,
  toSeedFiles,
} from '../../bootstrap/index.ts';
import type { FamilyRule } from '../../placement/index.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { NetworkSettings, SeedSettings } from '../context/settings.ts';
import { machineInput } from '../nodes/registration.ts';
import { macOf } from './vm-identity.ts';

interface SeedParts {
  readonly seed: SeedSettings;
  readonly network: NetworkSettings;
}

/** The same bytes each time except for the join token, so that a second upload replaces the first. */
export function seedBytes(
  reconcile: MachineReconcile,
  parts: SeedParts,
  join: JoinInput,
): Uint8Array {
  return buildSeedIso(
    toSeedFiles(renderedSeed(reconcile, parts, join)),
    reconcile.machine.requestedAt,
  );
}

export function renderedSeed(
  reconcile: MachineReconcile,
  { seed, network }: SeedParts,
  join: JoinInput,
): RenderedSeed {
  const { id } = reconcile.machine;
  const { name, addresses } = reconcile.placement;
  const rendered = renderSeed({
    machine: machineInput(reconcile),
    pool: seed.registration,
    login: seed.login,
    network: {
      interfaces: network.interfaces.map((card, index) => ({
        mac: macOf(id, index, card.macPrefix),
        mtu: card.mtu,
        // Static addresses are for the first interface; the others use DHCP.
        v4: index === 0 ? familyOf(network.v4, addresses, 4) : { kind: 'dhcp' },
        v6: index === 0 ? familyOf(network.v6, addresses, 6) : { kind: 'auto' },
        routes: [],
      })),
      dns: network.dns,
      search: network.search,
    },
    preinstalled: seed.preinstalled,
    join,
  });
  if (rendered.ok) return rendered.value;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `cannot render the seed of ${name}: ${rendered.problem}`,
  );
}

function familyOf(rule: FamilyRule, addresses: readonly string[], family: 4 | 6): FamilyInput {
  if (rule.kind !== 'static') return { kind: rule.kind };
  const own = addresses.filter((address) => address.includes(':') === (family === 6));
  return { kind: 'static', addresses: own, gateway: rule.gateway };
}
