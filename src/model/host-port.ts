// SPDX-License-Identifier: Apache-2.0
// Ports that a pod occupies on its node's addresses.

export interface HostPort {
  /** `0.0.0.0` means every address; it is the default of Kubernetes. */
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

const EVERY_ADDRESS = '0.0.0.0';

/** A container port of the Kubernetes API. */
export interface PortSource {
  readonly containerPort?: number | null;
  readonly hostIP?: string | null;
  readonly hostPort?: number | null;
  readonly protocol?: string | null;
}

/** Returns undefined for a port that occupies nothing on the node. */
export function readHostPort(source: PortSource): HostPort | undefined {
  const port = source.hostPort ?? 0;
  if (port <= 0) return undefined;
  return { ip: source.hostIP || EVERY_ADDRESS, protocol: source.protocol || 'TCP', port };
}

// As in the scheduler, `::` is an ordinary address here and does not mean every address.
export function hostPortsConflict(left: HostPort, right: HostPort): boolean {
  if (left.port !== right.port || left.protocol !== right.protocol) return false;
  return left.ip === right.ip || left.ip === EVERY_ADDRESS || right.ip === EVERY_ADDRESS;
}
