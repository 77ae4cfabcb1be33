// SPDX-License-Identifier: Apache-2.0
// A hand-made VM is a machine with a role instead of a pool. Where machines are grouped by pool, its group is
// `role:<role>`; no pool has such a name, because a pool's name is a DNS label.

const PREFIX = 'role:';

/** The VM of a template that is being built, or the template. */
export const TEMPLATE_ROLE = 'template';

/** Stands where a pool's name would. */
export function roleGroup(role: string): string {
  return `${PREFIX}${role}`;
}

/** Undefined for the name of a pool. */
export function roleOf(group: string): string | undefined {
  return group.startsWith(PREFIX) ? group.slice(PREFIX.length) : undefined;
}

export function isTemplateGroup(group: string): boolean {
  return roleOf(group) === TEMPLATE_ROLE;
}

/** `pool small`, or `role worker`. */
export function describeGroup(group: string): string {
  const role = roleOf(group);
  return role === undefined ? `pool ${group}` : `role ${role}`;
}

export type VmSource =
  | { readonly kind: 'image'; readonly image: string }
  | {
      readonly kind: 'template';
      readonly template: string;
      readonly clone: 'full' | 'linked';
    }
  | { readonly kind: 'netboot' };

/** What a person asked for. The names of image and template are those of the config. */
export interface VmRequest {
  readonly from: VmSource;
  /** Absent: all regions of the config. */
  readonly regions?: readonly string[];
  readonly vmId?: number;
  /** A placement strategy; absent: that of the config. */
  readonly strategy?: string;
  /** Absent: as configured. */
  readonly network?: VmNetwork;
  /** The template that is built. */
  readonly template?: TemplateVersion;
}

export type VmNetwork =
  | { readonly kind: 'dhcp' }
  | {
      readonly kind: 'static';
      /** In CIDR form. */
      readonly address: string;
      readonly gateway?: string;
      readonly dns: readonly string[];
    };

export interface TemplateVersion {
  /** Its name in the config. */
  readonly name: string;
  readonly version: number;
}

// Tags of templates that pvescaler built: they are in the list of VMs, so that the newest version is found without reading
// each VM.

const VERSION_TAG = /^version-(\d{1,9})$/;

export function templateTag(name: string): string {
  return `template-${name.toLowerCase()}`;
}

export function templateTags({ name, version }: TemplateVersion): readonly string[] {
  return [templateTag(name), `version-${version}`];
}

/** 0 for a template without a version. */
export function templateVersionOf(tags: readonly string[]): number {
  const versions = tags.flatMap((tag) => VERSION_TAG.exec(tag)?.[1] ?? []);
  return Math.max(0, ...versions.map(Number));
}

/** How the config names a template. */
export interface TemplateIdentity {
  /** Its name in the config, which templates that pvescaler built have as a tag. */
  readonly key?: string;
  readonly id: number | undefined;
  readonly idByHost: Readonly<Record<string, number>>;
  readonly name: string | undefined;
}

interface ListedVm {
  readonly vmId: number;
  readonly host: string;
  readonly name: string | undefined;
  readonly tags: readonly string[];
  readonly isTemplate: boolean;
}

/** True for every version that this cluster built. Another cluster on the same hosts may have a template of that name. */
export function isBuiltTemplate(
  { tags, isTemplate }: ListedVm,
  { key }: TemplateIdentity,
  clusterName: string | undefined,
): boolean {
  if (!isTemplate || key === undefined || !tags.includes(templateTag(key))) return false;
  return clusterName === undefined || tags.includes(clusterName.toLowerCase());
}

/** True for a template that was made by other means, or that another cluster built. */
export function isNamedTemplate(
  { vmId, host, name, isTemplate }: ListedVm,
  identity: TemplateIdentity,
): boolean {
  if (!isTemplate) return false;
  if (identity.id !== undefined) return vmId === identity.id;
  const hasIds = Object.keys(identity.idByHost).length > 0;
  return hasIds ? identity.idByHost[host] === vmId : name === identity.name;
}

/** What is cloned: on each host the newest version that this cluster built; where it built none, what the config names. */
export function findTemplates<T extends ListedVm>(
  vms: readonly T[],
  identity: TemplateIdentity,
  clusterName: string | undefined,
): readonly T[] {
  const built = vms.filter((vm) => isBuiltTemplate(vm, identity, clusterName));
  const newest = new Map<string, number>();
  for (const { host, tags } of built) {
    newest.set(host, Math.max(newest.get(host) ?? 0, templateVersionOf(tags)));
  }
  return vms.filter((vm) => {
    const version = newest.get(vm.host);
    if (version === undefined) return isNamedTemplate(vm, identity);
    return built.includes(vm) && templateVersionOf(vm.tags) === version;
  });
}
