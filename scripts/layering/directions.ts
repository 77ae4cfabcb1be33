// SPDX-License-Identifier: Apache-2.0
// The allowed imports between the folders of src/. `npm run check` enforces this table, docs/architecture.md explains it.
// A change of it needs an ADR.

export interface Layer {
  /** Other layers this one may import. Its own files are always allowed; everything not listed is refused. */
  readonly imports: readonly string[];
  /** A pure layer only computes: no Node API and no package except `packages`, so it runs on virtual time. */
  readonly pure?: boolean;
  /** npm packages a pure layer may use. */
  readonly packages?: readonly string[];
  /** Files that other layers may import; absent = only index.ts. */
  readonly open?: 'every-file';
}

const PURE = ['model', 'scheduling', 'placement', 'bootstrap', 'pools', 'scaling'] as const;

const FLEET_BASE = [...PURE, 'ports', 'config/types'];
const FLEET_LAYERS = [
  'fleet/records',
  'fleet/context',
  'fleet/nodes',
  'fleet/capacity',
  'fleet/machine',
  'fleet/recovery',
  'fleet/driver',
];

/** The named layer of the fleet and those before it. */
function fleetLayersUpTo(name: string): readonly string[] {
  return FLEET_LAYERS.slice(0, FLEET_LAYERS.indexOf(`fleet/${name}`) + 1);
}

export const LAYERS: Readonly<Record<string, Layer>> = {
  model: { imports: [], pure: true, open: 'every-file' },
  scheduling: { imports: ['model'], pure: true },
  placement: { imports: ['model'], pure: true, packages: ['ip-address'] },
  bootstrap: { imports: ['model'], pure: true, packages: ['yaml'] },
  pools: { imports: ['model', 'bootstrap', 'config/types'], pure: true },
  scaling: {
    imports: ['model', 'scheduling', 'placement', 'bootstrap', 'pools', 'config/types'],
    pure: true,
  },
  ports: { imports: ['model'], open: 'every-file' },
  // The engine, in layers: each imports only the ones before it.
  fleet: { imports: [...FLEET_BASE, 'fleet/requests', ...FLEET_LAYERS] },
  'fleet/records': { imports: FLEET_BASE, open: 'every-file' },
  'fleet/context': { imports: [...FLEET_BASE, ...fleetLayersUpTo('records')], open: 'every-file' },
  'fleet/requests': { imports: [...FLEET_BASE, ...fleetLayersUpTo('context')], open: 'every-file' },
  'fleet/nodes': { imports: [...FLEET_BASE, ...fleetLayersUpTo('context')], open: 'every-file' },
  'fleet/capacity': { imports: [...FLEET_BASE, ...fleetLayersUpTo('nodes')], open: 'every-file' },
  'fleet/machine': { imports: [...FLEET_BASE, ...fleetLayersUpTo('capacity')], open: 'every-file' },
  'fleet/recovery': { imports: [...FLEET_BASE, ...fleetLayersUpTo('machine')], open: 'every-file' },
  'fleet/driver': { imports: [...FLEET_BASE, ...fleetLayersUpTo('recovery')], open: 'every-file' },
  autoscaler: { imports: [...PURE, 'ports', 'fleet', 'config/types'] },
  externalgrpc: { imports: [...PURE, 'ports', 'fleet', 'config/types'] },
  // Both ends of the link between two threads; each thread loads only its own end.
  'externalgrpc/worker': {
    imports: ['pools', 'ports', 'fleet', 'externalgrpc'],
    open: 'every-file',
  },
  proxmox: { imports: ['model', 'ports', 'proxmox/wire-facts'] },
  // Facts of the Proxmox API as data: the only code that the Proxmox client and its simulator share.
  'proxmox/wire-facts': { imports: [], pure: true, open: 'every-file' },
  kubernetes: { imports: ['model', 'ports'] },
  store: { imports: ['model', 'ports'] },
  system: { imports: ['model', 'ports'] },
  ssh: { imports: ['model', 'ports'] },
  telemetry: { imports: ['model', 'ports'] },
  http: { imports: ['model', 'ports'] },
  config: { imports: ['model', 'ports'] },
  // Types of the effective pools and regions, derived from the schema: importing them loads nothing.
  'config/types': { imports: ['config'] },
  certs: { imports: ['ports'] },
  // Reads every side of an installation, through ports of its own.
  doctor: { imports: ['model', 'placement', 'ports', 'config', 'setup'] },
  setup: { imports: ['model', 'ports', 'fleet', 'config'] },
  serve: { imports: ['model', 'pools', 'ports', 'fleet', 'config', 'setup', 'http'] },
  // Commands that explain a decision make one.
  cli: {
    imports: [
      'model',
      'scaling',
      'ports',
      'fleet',
      'autoscaler',
      'config',
      'setup',
      'serve',
      'doctor',
      'certs',
    ],
  },
  // Certificates and certificate requests, which both simulators create.
  'sim/x509': { imports: [], open: 'every-file' },
  // An SSH server in this process.
  'sim/ssh': { imports: [], open: 'every-file' },
  'sim/proxmox': { imports: ['model', 'ports', 'proxmox/wire-facts', 'sim/x509', 'sim/ssh'] },
  'sim/kubernetes': { imports: ['model', 'ports', 'sim/x509'] },
};

/** Entry points of the threads, and parts of them. They may import everything, and no other file imports them. */
export const COMPOSITION_ROOTS: readonly string[] = [
  'src/main.ts',
  'src/connections.ts', // a part of main.ts
  'src/daemon.ts', // a part of main.ts
  'src/kubernetes-connection.ts', // a part of main.ts and of grpc-worker.ts
  'src/grpc-worker.ts',
];

/** The only file of src/ that the dashboard may import. */
export const UI_CONTRACT = 'src/http/contract.ts';
