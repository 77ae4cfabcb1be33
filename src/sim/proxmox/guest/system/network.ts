// SPDX-License-Identifier: Apache-2.0
// The guest's network cards: matches configuration to cards and reports addresses to the guest agent.
import type {
  GuestInterfaceInput,
  GuestIpAddress,
  GuestNetworkInterface,
  GuestNetworkReport,
} from '../guest-types.ts';

/** The configuration of one card. Stored on disk, as cloud-init stores it in netplan. */
export interface NicPlan {
  readonly mac?: string;
  /** A name, or a pattern with `*`, when the card is not matched by its MAC. */
  readonly name?: string;
  readonly setName?: string;
  readonly dhcp4: boolean;
  readonly addresses: readonly string[];
  readonly gateway?: string;
  readonly nameservers: readonly string[];
  readonly searchDomains: readonly string[];
}

type LeaseAddress = (mac: string, bridge: string) => string;

interface Nic {
  readonly input: GuestInterfaceInput;
  readonly plan: NicPlan | undefined;
  readonly name: string;
  leased: string | undefined;
}

const LOOPBACK: GuestNetworkInterface = {
  name: 'lo',
  'hardware-address': '00:00:00:00:00:00',
  'ip-addresses': [
    { 'ip-address-type': 'ipv4', 'ip-address': '127.0.0.1', prefix: 8 },
    { 'ip-address-type': 'ipv6', 'ip-address': '::1', prefix: 128 },
  ],
};

export class GuestNetwork {
  readonly #inputs: readonly GuestInterfaceInput[];
  #nics: Nic[];
  #areLinksUp = false;

  constructor(inputs: readonly GuestInterfaceInput[]) {
    this.#inputs = inputs;
    this.#nics = inputs.map((input) => buildNic(input, []));
  }

  /** Brings the links up with their static addresses. `requestLeases` adds the DHCP leases. */
  configure(plans: readonly NicPlan[]): void {
    this.#nics = this.#inputs.map((input) => buildNic(input, plans));
    this.#areLinksUp = true;
  }

  get needsLease(): boolean {
    return this.#nics.some((nic) => nic.plan?.dhcp4 === true);
  }

  requestLeases(leaseAddress: LeaseAddress): void {
    for (const nic of this.#nics) {
      if (nic.plan?.dhcp4 !== true) continue;
      nic.leased = leaseAddress(nic.input.mac, nic.input.bridge) || undefined;
    }
  }

  /** Has an address other than link-local, so downloads and package lists work. */
  get isOnline(): boolean {
    return this.#nics.some((nic) => listAddresses(nic).length > 0);
  }

  get firstAddress(): string | undefined {
    return this.#nics.flatMap(listAddresses)[0]?.split('/')[0];
  }

  interfaces(): GuestNetworkInterface[] {
    return [LOOPBACK, ...this.#nics.map((nic) => this.#formatForAgent(nic))];
  }

  report(): GuestNetworkReport[] {
    return this.#nics.map((nic) => ({
      slot: nic.input.slot,
      name: nic.name,
      mac: nic.input.mac.toLowerCase(),
      addresses: listAddresses(nic),
      gateway: nic.plan?.gateway,
      nameservers: nic.plan?.nameservers ?? [],
      searchDomains: nic.plan?.searchDomains ?? [],
    }));
  }

  #formatForAgent(nic: Nic): GuestNetworkInterface {
    const identity = { name: nic.name, 'hardware-address': nic.input.mac.toLowerCase() };
    // A card without configuration stays down. The agent omits its address list instead of returning an empty one.
    if (!this.#areLinksUp || nic.plan === undefined) return identity;
    const own = listAddresses(nic).map(parseCidr);
    const linkLocal = parseCidr(`${linkLocalAddress(nic.input.mac)}/64`);
    return { ...identity, 'ip-addresses': [...own, linkLocal] };
  }
}

function buildNic(input: GuestInterfaceInput, plans: readonly NicPlan[]): Nic {
  const kernelName = `ens${18 + Number(/\d+$/.exec(input.slot)?.[0] ?? 0)}`;
  const mac = input.mac.toLowerCase();
  const plan = plans.find((each) =>
    each.mac === undefined ? matchesGlob(each.name, kernelName) : each.mac.toLowerCase() === mac,
  );
  return { input, plan, name: plan?.setName ?? kernelName, leased: undefined };
}

function matchesGlob(pattern: string | undefined, name: string): boolean {
  if (pattern === undefined) return false;
  const source = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
  return new RegExp(`^${source.replaceAll('?', '.')}$`).test(name);
}

function listAddresses(nic: Nic): string[] {
  return [...(nic.plan?.addresses ?? []), ...(nic.leased === undefined ? [] : [nic.leased])];
}

function parseCidr(cidr: string): GuestIpAddress {
  const [address = '', prefix] = cidr.split('/');
  const six = address.includes(':');
  return {
    'ip-address-type': six ? 'ipv6' : 'ipv4',
    'ip-address': address,
    prefix: Number(prefix ?? (six ? 64 : 24)),
  };
}

/** The modified EUI-64 address of RFC 4291, as the kernel derives it from the MAC. */
function linkLocalAddress(mac: string): string {
  const bytes = mac.split(':').map((part) => Number.parseInt(part, 16) || 0);
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes;
  const groups = [((a ^ 2) << 8) | b, (c << 8) | 0xff, 0xfe00 | d, (e << 8) | f];
  return `fe80::${groups.map((group) => group.toString(16)).join(':')}`;
}
