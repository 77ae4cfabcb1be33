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
