// SPDX-License-Identifier: Apache-2.0
// Reads that only `pvescaler doctor` needs. They change nothing, and reject as the calls of Hypervisor and Cluster do.
import type { CallOptions, Hypervisor } from './hypervisor.ts';

export interface TokenInfo {
  /** The token has only the privileges that were granted to itself, and never more than its user. */
  readonly hasPrivilegeSeparation: boolean;
  /** Wall clock; undefined: it does not expire. */
  readonly expiresAt: number | undefined;
}

export interface BridgeInfo {
  readonly name: string;
  /** False: an SDN VNet, whose zone decides about VLANs. */
  readonly isLocal: boolean;
  readonly isVlanAware: boolean;
  /** VLANs that the bridge carries, `2-4094` or `10 20`; undefined: all. */
  readonly vlans: string | undefined;
}

export interface UrlInfo {
  /** Undefined if the server does not say. */
  readonly bytes: number | undefined;
}

export interface EndpointInfo {
  /** Of Proxmox VE. */
  readonly version: string;
  /** The host that answers, over SSH; the API of a host answers for all of them. */
  readonly host: string | undefined;
}

/** One region, read without retries that would hide a failing endpoint. */
export interface RegionInspector {
  readonly hypervisor: Hypervisor;
  /** `user@realm!name` of a token, `user@realm` otherwise; `root@pam` over SSH. */
  readonly account: string;
  /** Read through this endpoint only: `https://host:8006` or `ssh://host:22`. */
  endpoint(origin: string, options: CallOptions): Promise<EndpointInfo>;
  /** Undefined if the login is no token, or a token without User.Modify, which may not read itself. */
  token(options: CallOptions): Promise<TokenInfo | undefined>;
  /** The host's wall clock, in whole seconds. */
  hostTime(host: string, options: CallOptions): Promise<number>;
  bridges(host: string, options: CallOptions): Promise<readonly BridgeInfo[]>;
  /** The host itself requests the URL. */
  urlInfo(
    host: string,
    source: { readonly url: string; readonly verifyCertificates: boolean },
    options: CallOptions,
  ): Promise<UrlInfo>;
  close(): Promise<void>;
}

/** One verb on one resource. */
export interface AccessRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  /** Works without it, with less: the pages in docs say what is lost. */
  readonly isOptional: boolean;
  /** Needed only for records in the cluster. */
  readonly isForState: boolean;
  readonly why: string;
}

export interface InspectedNode {
  readonly name: string;
  readonly providerId: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** A container of a pod that has not ended. */
export interface RunningContainer {
  readonly namespace: string;
  readonly pod: string;
  readonly image: string;
  /** `command` and `args` of the container. */
  readonly command: readonly string[];
}

/** A cluster, read without a watch. */
export interface ClusterInspector {
  /** URL of the API server. */
  readonly server: string;
  /** Undefined: the system's roots. */
  readonly caPem: string | undefined;
  /** Everything that pvescaler does in the cluster. */
  readonly rights: readonly AccessRight[];
  /** Kinds of records in the cluster (`state.kubernetes`), with the OpenAPI schemas that this release expects. */
  readonly recordKinds: readonly { readonly kind: string; readonly schema: object }[];
  version(options: CallOptions): Promise<string>;
  isAllowed(right: AccessRight, options: CallOptions): Promise<boolean>;
  nodes(options: CallOptions): Promise<readonly InspectedNode[]>;
  /** The OpenAPI schema of the kind; undefined if the server does not know it. */
  schema(
    groupVersion: string,
    kind: string,
    options: CallOptions,
  ): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** Containers of pods that have not ended, whose image has this text in its name. */
  containers(image: string, options: CallOptions): Promise<readonly RunningContainer[]>;
  close(): Promise<void>;
}
