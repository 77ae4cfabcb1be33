// SPDX-License-Identifier: Apache-2.0
// The settings of one machine. Those of a hand-made VM are made from its request and the config; they have the form of
// a pool's, so that every phase handles both alike.
import type { Machine } from '../../model/machine.ts';
import { roleOf, type VmNetwork, type VmRequest } from '../../model/role.ts';
import { STRATEGIES, type Strategy } from '../../placement/index.ts';
import type { ReconcileContext } from './reconcile-context.ts';
import type {
  FleetSettings,
  NetworkSettings,
  PoolSettings,
  SourceSettings,
  VmSettings,
} from './settings.ts';

const NO_JOIN = {
  kind: 'none',
  packages: [],
  files: [],
  cloudConfig: undefined,
  proxy: undefined,
} as const;

/** Undefined when the config no longer has what the machine is made from. */
export function settingsOf(
  { pools, vms }: Pick<FleetSettings, 'pools' | 'vms'>,
  { pool, vm }: Pick<Machine, 'pool' | 'vm'>,
): PoolSettings | undefined {
  const role = roleOf(pool);
  if (role === undefined) return pools[pool];
  // Adopted from Proxmox: it exists, so it is never created.
  if (vm === undefined) return { ...vms.base, name: pool };
  if (vm.template !== undefined) return buildSettingsOf(vms, { pool, name: vm.template.name, vm });
  const source = sourceOf(vm, vms);
  if (source === undefined) return undefined;
  return {
    ...vms.base,
    name: pool,
    names: { ...vms.base.names, role },
    source,
    seed: seedOf(vms, source),
    regions: vm.regions ?? vms.base.regions,
    network: networkOf(vms.base.network, vm.network),
    placement: { ...vms.base.placement, strategy: strategyOf(vm) ?? vms.base.placement.strategy },
  };
}

/** The longest time from its placement; then the VM is removed. */
const BUILD_TIMEOUT_MS = 60 * 60_000;

/** Of the VM that becomes a template: it boots once from the image, without a login. */
function buildSettingsOf(
  vms: VmSettings,
  { pool, name, vm }: { readonly pool: string; readonly name: string; readonly vm: VmRequest },
): PoolSettings | undefined {
  const { base } = vms;
  const build = vms.templates[name]?.build;
  const image = build === undefined ? undefined : vms.images[build.image];
  const [card] = base.network.interfaces;
  if (build === undefined || image === undefined || base.seed === undefined || card === undefined)
    return undefined;
  return {
    ...base,
    name: pool,
    source: { kind: 'image', ...image },
    seed: {
      ...base.seed,
      login: { ...base.seed.login, publicKeys: [] },
      join: { ...NO_JOIN, files: build.files },
      template: build,
    },
    regions: vm.regions ?? base.regions,
    network: { ...base.network, interfaces: [{ ...card, bridge: build.bridge }] },
    disk: { ...base.disk, storage: build.storage ?? base.disk.storage },
    provisionTimeoutMs: BUILD_TIMEOUT_MS,
  };
}

function sourceOf({ from }: VmRequest, vms: VmSettings): SourceSettings | undefined {
  switch (from.kind) {
    case 'image': {
      const image = vms.images[from.image];
      return image === undefined ? undefined : { kind: 'image', ...image };
    }
    case 'template': {
      const template = vms.templates[from.template];
      return template === undefined
        ? undefined
        : {
            kind: 'template',
            key: from.template,
            id: template.id,
            idByHost: template.idByHost,
            name: template.name,
            clone: from.clone,
          };
    }
    case 'netboot':
      return { kind: 'netboot' };
  }
}

/** A template contains the guest agent; an image gets it at the first boot. */
function seedOf({ base }: VmSettings, { kind }: SourceSettings): PoolSettings['seed'] {
  if (kind === 'netboot' || base.seed === undefined) return undefined;
  return { ...base.seed, preinstalled: kind === 'template' };
}

/** A given address replaces the family it belongs to; the other one stays automatic. */
function networkOf(base: NetworkSettings, asked: VmNetwork | undefined): NetworkSettings {
  if (asked === undefined || asked.kind === 'dhcp') return base;
  const [address = '', prefix = ''] = asked.address.split('/');
  const family = {
    kind: 'static',
    ranges: [{ from: address, to: address }],
    prefix: Number(prefix),
    gateway: asked.gateway,
  } as const;
  const isV6 = address.includes(':');
  return {
    ...base,
    ...(isV6 ? { v4: { kind: 'off' }, v6: family } : { v4: family }),
    dns: asked.dns.length > 0 ? asked.dns : base.dns,
  };
}

function strategyOf({ strategy }: VmRequest): Strategy | undefined {
  return STRATEGIES.find((known) => known === strategy);
}

/** What the config lacks when `settingsOf` returns undefined. */
export function missingSettings({ pool, vm }: Pick<Machine, 'pool' | 'vm'>): string {
  if (vm === undefined) return `pool ${pool}`;
  const { from, template } = vm;
  if (template !== undefined) return `image of template ${template.name}`;
  return from.kind === 'template' ? `template ${from.template}` : `its ${from.kind}`;
}

/** Settings of hand-made VMs that wait for a place, those of open requests included: the pass applies them next. */
export function waitingVms({
  records,
  settings,
}: Pick<ReconcileContext, 'records' | 'settings'>): readonly PoolSettings[] {
  const waiting = records.index.inPhase('requested');
  const open = records.intents.filter(({ state }) => state === 'open');
  return [...waiting, ...open].flatMap((one) =>
    'vm' in one && one.vm !== undefined ? (settingsOf(settings, one) ?? []) : [],
  );
}
