// SPDX-License-Identifier: Apache-2.0
// DHCP leases on the simulated bridges: one address per MAC, assigned in order, kept until the VM is destroyed.

function parseAddress(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}

export class DhcpLeases {
  readonly #byMac = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #next = new Map<string, number>();

  /** Address in CIDR form; empty when the network has no free address. */
  lease(mac: string, network: string): string {
    const key = `${mac.toUpperCase()} ${network}`;
    const known = this.#byMac.get(key);
    if (known !== undefined) return known;
    const address = this.#findFreeAddress(network);
    if (address === undefined) return '';
    this.#byMac.set(key, address);
    this.#taken.add(address);
    return address;
  }

  release(mac: string): void {
    for (const [key, address] of this.#byMac) {
      if (!key.startsWith(`${mac.toUpperCase()} `)) continue;
      this.#byMac.delete(key);
      this.#taken.delete(address);
    }
  }

  #findFreeAddress(network: string): string | undefined {
    const [base = '', bits = '24'] = network.split('/');
    const size = 2 ** (32 - Number(bits));
    const first = parseAddress(base);
    // The first hundred addresses are for hosts, gateways and static assignments.
    const low = size > 200 ? 100 : 2;
    const start = this.#next.get(network) ?? low;
    for (let step = 0; step < size; step += 1) {
      const offset = low + ((start - low + step) % Math.max(1, size - low - 1));
      const address = `${formatAddress(first + offset)}/${bits}`;
      if (this.#taken.has(address)) continue;
      this.#next.set(network, offset + 1);
      return address;
    }
    return undefined;
  }
}
