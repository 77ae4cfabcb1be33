// SPDX-License-Identifier: Apache-2.0
// The schema of the whole config file. Values keep the notation of the file. Checks of a single key are
// part of the schema; checks that need several keys are in ../checks.
import * as z from 'zod';
import {
  cleanupSchema,
  clusterSchema,
  grpcSchema,
  httpSchema,
  intervalsSchema,
  logSchema,
  stateSchema,
} from './daemon.ts';
import { joinSchema } from './join.ts';
import { key } from './key.ts';
import { entryName } from './name-leaves.ts';
import { autoscalerSchema, gpuSchema, guardsSchema, pricingSchema } from './policy.ts';
import { poolSchema } from './pool.ts';
import { regionSchema } from './region.ts';
import {
  guestSshSchema,
  imageSchema,
  readinessSchema,
  sizeSchema,
  templateSchema,
} from './sources.ts';
import { vmsSchema } from './vms.ts';

export const API_VERSION = 'pvescaler.dev/v1alpha1';

export const configSchema = z.strictObject({
  apiVersion: key(z.literal(API_VERSION).prefault(API_VERSION), 'Version of the file format.', {
    replaces: { kubenodesmith: 'schemaVersion' },
  }),
  mode: key(
    z.enum(['standalone', 'externalgrpc']).prefault('standalone'),
    '`externalgrpc` serves the Cluster Autoscaler over gRPC. `standalone` needs no Cluster Autoscaler: pvescaler itself watches pods and nodes, creates machines for pending pods and drains idle ones.',
  ),
  cluster: key(clusterSchema, 'The Kubernetes cluster.'),
  state: key(stateSchema, 'State that must survive a restart.'),
  grpc: key(grpcSchema, 'gRPC server for the Cluster Autoscaler (mode `externalgrpc`).'),
  http: key(httpSchema, 'Health and metrics.'),
  log: key(logSchema, 'Logging.'),
  intervals: key(intervalsSchema, 'Intervals of the periodic work.'),
  cleanup: key(cleanupSchema, 'Handling of lost machines and orphaned resources.'),
  proxmox: key(
    z.record(entryName(), regionSchema).prefault({}),
    'Proxmox clusters by region name; the name is part of provider ids (`proxmox://<region>/<vmid>`).',
    { replaces: { externalgrpc: 'proxmox', kubenodesmith: 'providers' } },
  ),
  images: key(z.record(entryName(), imageSchema).prefault({}), 'Cloud images by name.'),
  templates: key(z.record(entryName(), templateSchema).prefault({}), 'Template VMs by name.', {
    replaces: { 'vm-plan': 'vm_template' },
  }),
  sizes: key(z.record(entryName(), sizeSchema).prefault({}), 'Named sizes.', {
    replaces: { 'vm-plan': 'vm_sizes' },
  }),
  vms: key(vmsSchema, 'VMs created by hand with `pvescaler vm create`.'),
  ssh: key(guestSshSchema, 'SSH access to machines.'),
  readiness: key(readinessSchema, 'When a single VM counts as ready.'),
  join: key(joinSchema, 'How machines become nodes.', { replaces: { externalgrpc: 'k3s' } }),
  guards: key(guardsSchema, 'When not to scale.'),
  autoscaler: key(autoscalerSchema, 'The standalone autoscaler.'),
  pricing: key(pricingSchema, 'Prices used to choose the cheapest pool.'),
  gpu: key(gpuSchema, 'GPU labels reported to the Cluster Autoscaler.'),
  pools: key(z.array(poolSchema).prefault([]), 'Pools of machines.', {
    replaces: { externalgrpc: 'node_groups', kubenodesmith: 'nodePools' },
  }),
});

/** The file with all defaults. Values keep the notation of the file. */
export type ConfigFile = z.output<typeof configSchema>;
export type RegionFile = z.output<typeof regionSchema>;
export type PoolFile = z.output<typeof poolSchema>;
export type ImageFile = z.output<typeof imageSchema>;
export type TemplateFile = z.output<typeof templateSchema>;
export type SizeFile = z.output<typeof sizeSchema>;
