// SPDX-License-Identifier: Apache-2.0
// The bridges of the machines' network cards on each host, and their VLANs.
import type { BridgeInfo, RegionInspector } from '../ports/inspection.ts';
import { type Check, failure, type Outcome, ok, skipped, warning } from './check.ts';
import { type RegionReader, unique } from './region-reader.ts';

export function networkChecks(reader: RegionReader, host: string, group: string): readonly Check[] {
  const cards = reader.needsOn(host).flatMap(({ network }) => network.interfaces);
  let read: Promise<readonly BridgeInfo[]> | undefined;
  const bridgesOf = (inspector: RegionInspector, signal: AbortSignal) =>
    (read ??= inspector.bridges(host, { signal }));
  const check = (
    name: Check['name'],
    subject: string,
    judge: (bridges: readonly BridgeInfo[]) => Outcome,
  ): Check => ({
    name,
    group,
    subject,
    run: async (signal) => judge(await bridgesOf(await reader.inspector(), signal)),
  });
  const names = unique(cards.map(({ bridge }) => bridge));
  const vlans = unique(
    cards.flatMap(({ bridge, vlan }) => (vlan === undefined ? [] : [`${bridge} ${vlan}`])),
  );
  return [
    ...names.map((name) => check('bridge', name, (bridges) => judgeBridge(host, name, bridges))),
    ...vlans.map((text) => {
      const [bridge = '', vlan = ''] = text.split(' ');
      return check('vlan', `${vlan} on ${bridge}`, (bridges) =>
        judgeVlan(
          bridges.find(({ name }) => name === bridge),
          Number(vlan),
        ),
      );
    }),
  ];
}

function judgeBridge(host: string, name: string, bridges: readonly BridgeInfo[]): Outcome {
  const found = bridges.find((bridge) => bridge.name === name);
  if (found !== undefined) return ok(found.isLocal ? 'exists' : 'is an SDN VNet');
  const names = bridges.map((bridge) => bridge.name).join(', ');
  return failure(
    `${host} has no bridge ${name}; it has ${names || 'none'}`,
    'Correct the bridge in pools, vms or templates, create the bridge, or deny the host.',
  );
}

function judgeVlan(bridge: BridgeInfo | undefined, vlan: number): Outcome {
  if (bridge === undefined) return skipped('there is no such bridge');
  if (!bridge.isLocal) {
    return failure(
      `${bridge.name} is an SDN VNet, which has its own VLAN`,
      'Remove vlan from the interface.',
    );
  }
  if (!bridge.isVlanAware) {
    return warning(
      `${bridge.name} is not VLAN-aware: Proxmox creates a bridge ${bridge.name}v${vlan} on its first port`,
      'Enable "VLAN aware" on the bridge, unless its port carries the VLAN.',
    );
  }
  if (bridge.vlans !== undefined && !carries(bridge.vlans, vlan)) {
    return failure(
      `${bridge.name} carries the VLANs ${bridge.vlans}, and not ${vlan}`,
      `Add the VLAN to bridge-vids of ${bridge.name}, or correct the config.`,
    );
  }
  return ok('the bridge carries it');
}

/** `2-4094`, `10 20`, `10,20-30`. */
function carries(text: string, vlan: number): boolean {
  return text.split(/[\s,]+/).some((part) => {
    const [from = Number.NaN, to = from] = part.split('-').map(Number);
    return from <= vlan && vlan <= to;
  });
}
