// SPDX-License-Identifier: Apache-2.0
// Types of the facts. Field names are those of the API schema of Proxmox.

export type ApiVersion = '8.4' | '9.2';

export interface ParamFact {
  readonly type?: string;
  readonly optional?: number;
  readonly format?: string;
  /** Names an entry of PROPERTY_STRINGS: the value is `key=value,…`. */
  readonly propertyString?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[] | null;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** Another parameter that must be present. */
  readonly requires?: string;
  readonly items?: ParamFact;
  readonly properties?: Readonly<Record<string, ParamFact>>;
  readonly alias?: string;
  readonly keyAlias?: string;
  readonly default_key?: number;
  readonly 'type-property'?: string;
  readonly 'instance-types'?: readonly string[];
  readonly min?: number;
  readonly max?: number;
}

/** `['perm', '/vms/{vmid}', ['VM.Audit'], 'any', 1]`, nested by `and` and `or`. */
export type PermissionCheck = readonly (string | number | readonly string[] | PermissionCheck)[];

export interface PermissionFact {
  /** `all` = any authenticated caller, `world` = no authentication. */
  readonly user?: string;
  readonly check?: PermissionCheck;
  /** No permissions declared: only a session of root@pam is allowed. */
  readonly rootOnly?: boolean;
  readonly hasExtraCodeChecks?: boolean;
}

export interface EndpointRow {
  readonly method: string;
  readonly path: string;
  readonly name: string;
  readonly versions: readonly string[];
  /** Index into PARAM_SETS. */
  readonly params: number;
  readonly permissions: PermissionFact;
  /** Runs in the root daemon of the host. */
  readonly protected?: number;
  /** The parameter that names the host to which the request is proxied. */
  readonly proxyto?: string;
  /** 0: API tokens are not allowed. */
  readonly allowtoken?: number;
}

export interface EndpointFact extends Omit<EndpointRow, 'params'> {
  /** `net[n]` stands for net0, net1, …; the ranges are in INDEX_RANGES. */
  readonly params: Readonly<Record<string, ParamFact>>;
}
