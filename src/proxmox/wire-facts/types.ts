// SPDX-License-Identifier: Apache-2.0
// The shape of the facts. The field names are those of the API's own schema, so that a row reads like it.

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
  /** Another parameter that must come along. */
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
  /** `all` = any authenticated caller, `world` = nobody needs to log in. */
  readonly user?: string;
  readonly check?: PermissionCheck;
  /** No permissions declared: only the session of root@pam passes. */
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
  /** The parameter that names the host which answers. */
  readonly proxyto?: string;
  /** 0: not for API tokens. */
  readonly allowtoken?: number;
}

export interface EndpointFact extends Omit<EndpointRow, 'params'> {
  /** `net[n]` stands for net0, net1, …; the ranges are in INDEX_RANGES. */
  readonly params: Readonly<Record<string, ParamFact>>;
}
