// SPDX-License-Identifier: Apache-2.0
// One region of the config and what several checks read of it, once.
import type { Config, PoolConfig, RegionConfig, TemplateConfig } from '../config/index.ts';
import type { Host } from '../model/host.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import type { EndpointInfo, RegionInspector } from '../ports/inspection.ts';
import { type Outcome, skipped } from './check.ts';

/** What an endpoint answered, or why not. */
export type EndpointAnswer = EndpointInfo | { readonly error: PvescalerError };

/** What machines are created from, and what they need of hosts. */
export type MachineNeeds = Pick<PoolConfig, 'from' | 'size' | 'network' | 'placement'>;

export class RegionReader {
  readonly config: Config;
  readonly region: RegionConfig;
  readonly group: string;
  readonly #inspector: Promise<RegionInspector>;
  readonly #signal: AbortSignal;
  readonly #answers = new Map<string, Promise<EndpointAnswer>>();
  #view: Promise<RegionView> | undefined;

  constructor(options: {
    readonly config: Config;
    readonly region: RegionConfig;
    readonly inspector: Promise<RegionInspector>;
    readonly signal: AbortSignal;
  }) {
    this.config = options.config;
    this.region = options.region;
    this.group = `region ${options.region.name}`;
    this.#inspector = options.inspector;
    this.#signal = options.signal;
    // Checks that need it report the error.
    this.#inspector.catch(() => undefined);
  }

  inspector(): Promise<RegionInspector> {
    return this.#inspector;
  }

  /** URLs of the API, or `ssh://host:port`. */
  get origins(): readonly string[] {
    const { transport, endpoints } = this.region;
    return transport.kind === 'rest' ? endpoints : transport.hosts.map(formatSshOrigin);
  }

  /** Asked once, by itself. */
  endpoint(origin: string): Promise<EndpointAnswer> {
    const known = this.#answers.get(origin) ?? this.#askEndpoint(origin);
    this.#answers.set(origin, known);
    return known;
  }

  async #askEndpoint(origin: string): Promise<EndpointAnswer> {
    try {
      const inspector = await this.#inspector;
      return await inspector.endpoint(origin, { signal: this.#signal });
    } catch (error) {
      if (error instanceof PvescalerError) return { error };
      throw error;
    }
  }

  /** Hosts that answered over SSH; undefined with the API, where any endpoint answers for all hosts. */
  async connectedHosts(): Promise<readonly string[] | undefined> {
    if (this.region.transport.kind === 'rest') return undefined;
    const answers = await Promise.all(this.origins.map((origin) => this.endpoint(origin)));
    return answers.flatMap((one) => ('error' in one || one.host === undefined ? [] : [one.host]));
  }

  view(): Promise<RegionView> {
    this.#view ??= this.#inspector.then(({ hypervisor }) =>
      hypervisor.view({ signal: this.#signal }),
    );
    return this.#view;
  }

  /** Runs a check that needs the view; skipped while there is none, which the check `region` reports. */
  async withView(
    use: (view: RegionView, inspector: RegionInspector) => Outcome | Promise<Outcome>,
  ): Promise<Outcome> {
    const view = await this.view().catch(() => undefined);
    if (view === undefined) return skipped('the region cannot be read');
    return use(view, await this.#inspector);
  }

  /** Hosts that may get machines. */
  usableHosts({ hosts }: RegionView): readonly Host[] {
    const { allow, deny } = this.region.hosts;
    return hosts.filter(
      ({ name }) => (allow.length === 0 || allow.includes(name)) && !deny.includes(name),
    );
  }

  get pools(): readonly PoolConfig[] {
    return this.config.pools.filter(({ regions }) => regions.includes(this.region.name));
  }

  /** Of the pools, of VMs created by hand, and of the VMs that become templates. */
  get needs(): readonly MachineNeeds[] {
    const { vms, templates } = this.config;
    return [
      ...this.pools,
      ...(vms.isConfigured ? [{ ...vms, from: vms.defaultSource ?? vms.from }] : []),
      ...Object.values(templates).flatMap((template) => buildNeeds(vms, template)),
    ];
  }

  /** Of the machines that may be on the host. */
  needsOn(host: string): readonly MachineNeeds[] {
    return this.needs.filter(({ placement }) => {
      const { allow, deny } = placement.hosts;
      return (allow.length === 0 || allow.includes(host)) && !deny.includes(host);
    });
  }

  usesImages(host?: string): boolean {
    const needs = host === undefined ? this.needs : this.needsOn(host);
    return needs.some(({ from }) => from.kind === 'image');
  }
}

/** The first network card is that of the VMs, on the bridge of the template. */
function buildNeeds(
  vms: Config['vms'],
  { image, bridge, cpu, memoryBytes, diskBytes }: TemplateConfig,
): readonly MachineNeeds[] {
  if (image === undefined) return [];
  const { network, placement, size } = vms;
  return [
    {
      from: { kind: 'image', image },
      size: { ...size, cpu, memoryBytes, diskBytes },
      network: {
        ...network,
        interfaces: network.interfaces.slice(0, 1).map((card) => ({ ...card, bridge })),
      },
      placement: { ...placement, hosts: { allow: [], deny: [] } },
    },
  ];
}

function formatSshOrigin({ hostname, port }: { readonly hostname: string; readonly port: number }) {
  return `ssh://${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
}

export function unique<T>(items: readonly T[]): readonly T[] {
  return [...new Set(items)];
}
