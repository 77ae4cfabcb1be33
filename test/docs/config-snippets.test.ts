// SPDX-License-Identifier: Apache-2.0
// Every config in the documentation is valid, also the fragments: what a fragment leaves out is completed first.
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { loadConfig, renderProblems } from '../../src/config/index.ts';
import { type CodeBlock, DOCUMENTS } from './documents.ts';

type Mapping = Readonly<Record<string, unknown>>;

const REGION = {
  endpoints: ['https://pve1.example:8006'],
  token: { id: 'pvescaler@pve!server', secretFile: '/etc/pvescaler/token' },
};
const IMAGES = { noble: { url: 'https://images.example/noble.img', unverified: true } };
const SSH_REGION = { transport: {} };
const TLS = { cert: '/tls/tls.crt', key: '/tls/tls.key', clientCa: '/tls/ca.crt' };
const FINGERPRINT = 'SHA256:3F0uqxVkmZ5kqyVLbQ6ZbHqYQ5pBmS4lAPY4Ay1wQ7c';

/** Fragments of a part of the config, by their first key; the others begin at the top level. */
const PARENTS: Readonly<Record<string, (fragment: Mapping) => Mapping>> = {
  token: (fragment) => ({ proxmox: { lab: fragment } }),
};

/** The config in values of the chart. */
function unwrapValues(parsed: Mapping): Mapping {
  const { config, mode } = parsed;
  return config === undefined ? parsed : { mode, ...asMapping(config) };
}

const blocks = DOCUMENTS.flatMap((document) => document.blocks).filter(
  ({ language }) => language === 'yaml',
);

function asMapping(value: unknown): Mapping {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function mapValues(mapping: Mapping, change: (value: Mapping) => Mapping): Mapping {
  return Object.fromEntries(
    Object.entries(mapping).map(([key, value]) => [key, change(asMapping(value))]),
  );
}

/** Objects of Kubernetes and values of Helm charts are only parsed. */
function isConfig(text: string): boolean {
  const content = asMapping(parse(text));
  return !['kind', 'extraArgs', 'address', 'replicas'].some((key) => key in content);
}

function complete(text: string): Mapping {
  const parsed = unwrapValues(asMapping(parse(text.replaceAll('SHA256:…', FINGERPRINT))));
  const [first = ''] = Object.keys(parsed);
  const fragment = PARENTS[first]?.(parsed) ?? parsed;
  const pools = Array.isArray(fragment['pools']) ? fragment['pools'] : [];
  const isExternal = /clusterAutoscaler:|^grpc:/m.test(text);
  const mode = fragment['mode'] ?? (isExternal ? 'externalgrpc' : 'standalone');
  const hasSource = 'images' in fragment || 'templates' in fragment;
  return {
    ...(mode === 'externalgrpc' && { grpc: { tls: TLS } }),
    ...(!hasSource && { images: IMAGES }),
    ...fragment,
    mode,
    proxmox: mapValues(asMapping(fragment['proxmox'] ?? { lab: {} }), (region) => ({
      ...('transport' in region ? SSH_REGION : REGION),
      ...region,
    })),
    pools: pools.map((pool) => ({ size: { cpu: 2, memory: '4Gi' }, ...asMapping(pool) })),
  };
}

function findErrors({ text, at }: CodeBlock): string {
  const file = { path: at, text: stringify(complete(text)) };
  const { problems } = loadConfig({ file, environment: {}, flags: [], homeFolder: '/home/user' });
  return renderProblems(problems.filter(({ severity }) => severity === 'error'));
}

describe('configs in the documentation', () => {
  it.each(blocks.filter(({ text }) => isConfig(text)).map((block) => [block.at, block] as const))(
    '%s is valid',
    (_at, block) => {
      expect(findErrors(block)).toBe('');
    },
  );

  it('are most of the YAML', () => {
    const others = blocks.filter(({ text }) => !isConfig(text));
    expect(blocks.length - others.length).toBeGreaterThan(others.length);
  });

  it.each([
    ['pools:\n  - name: workers\n    limit: { max: 3 }\n', /limit: unknown key/],
    ['autoscaler: { poolChoice: cheap }\n', /poolChoice/],
    ['token: { id: pvescaler, secretFile: x }\n', /token\.id/],
  ])('would be refused with a typo: %j', (text, message) => {
    expect(findErrors({ text, at: 'x', language: 'yaml', heading: '' })).toMatch(message);
  });
});
