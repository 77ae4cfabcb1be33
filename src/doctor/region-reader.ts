// SPDX-License-Identifier: Apache-2.0
// One region of the config and what several checks read of it, once.
import type { Config, PoolConfig, RegionConfig } from '../config/index.ts';
import type { Host } from '../model/host.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import type { EndpointInfo, RegionInspector } from '../ports/inspection.ts';
import { type Outcome, skipped } from './check.ts';

/** What an endpoint answered, or why not. */
export type EndpointAnswer = EndpointInfo | { readonly error: PvescalerError };

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

  /** Pools that may have machines on the host. */
  poolsOn(host: string): readonly PoolConfig[] {
    return this.pools.filter(({ placement }) => {
      const { allow, deny } = placement.hosts;
      return (allow.length === 0 || allow.includes(host)) && !deny.includes(host);
    });
  }

  usesImages(host?: string): boolean {
    const pools = host === undefined ? this.pools : this.poolsOn(host);
    return pools.some(({ from }) => from.kind === 'image');
  }
}

function formatSshOrigin({ hostname, port }: { readonly hostname: string; readonly port: number }) {
  return `ssh://${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
}

export function unique<T>(items: readonly T[]): readonly T[] {
  return [...new Set(items)];
}
