// SPDX-License-Identifier: Apache-2.0
// Ports that a pod takes on its node's own addresses.

export interface HostPort {
  /** `0.0.0.0` stands for every address; Kubernetes reads an absent one so. */
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

const EVERY_ADDRESS = '0.0.0.0';

/** A container's port as it comes from the Kubernetes API. */
export interface PortSource {
  readonly hostIP?: string | null;
  readonly hostPort?: number | null;
  readonly protocol?: string | null;
}

/** Undefined for a port that takes nothing on the node. */
export function hostPort(source: PortSource): HostPort | undefined {
  const port = source.hostPort ?? 0;
  if (port <= 0) return undefined;
  return { ip: source.hostIP || EVERY_ADDRESS, protocol: source.protocol || 'TCP', port };
}

// `::` is an address like any other here: so the scheduler sees it.
export function portsCollide(left: HostPort, right: HostPort): boolean {
  if (left.port !== right.port || left.protocol !== right.protocol) return false;
  return left.ip === right.ip || left.ip === EVERY_ADDRESS || right.ip === EVERY_ADDRESS;
}
