// SPDX-License-Identifier: Apache-2.0
// The whole config file as a schema. Input names are those of the file; a value that parses here is kept as
// it was written. What one key alone can tell is checked here, what takes two keys is checked in ../checks.
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

export const API_VERSION = 'pvescaler.dev/v1alpha1';

export const configSchema = z.strictObject({
  apiVersion: key(z.literal(API_VERSION).prefault(API_VERSION), 'Version of this file’s format.', {
    replaces: { kubenodesmith: 'schemaVersion' },
  }),
  mode: key(
    z.enum(['standalone', 'externalgrpc']).prefault('standalone'),
    'Decide ourselves, or serve the Cluster Autoscaler by gRPC.',
  ),
  cluster: key(clusterSchema, 'The Kubernetes cluster.'),
  state: key(stateSchema, 'What must survive a restart.'),
  grpc: key(grpcSchema, 'The server for the Cluster Autoscaler (mode `externalgrpc`).'),
  http: key(httpSchema, 'Health, metrics and dashboard.'),
  log: key(logSchema, 'The log.'),
  intervals: key(intervalsSchema, 'How often we look.'),
  cleanup: key(cleanupSchema, 'Machines and remains that nobody needs.'),
  proxmox: key(
    z.record(entryName(), regionSchema).prefault({}),
    'Proxmox clusters by name; the name is the region in provider ids (`proxmox://<region>/<vmid>`).',
    { replaces: { externalgrpc: 'proxmox', kubenodesmith: 'providers' } },
  ),
  images: key(z.record(entryName(), imageSchema).prefault({}), 'Cloud images by name.'),
  templates: key(z.record(entryName(), templateSchema).prefault({}), 'Template VMs by name.', {
    replaces: { 'vm-plan': 'vm_template' },
  }),
  sizes: key(z.record(entryName(), sizeSchema).prefault({}), 'Named sizes.', {
    replaces: { 'vm-plan': 'vm_sizes' },
  }),
  ssh: key(guestSshSchema, 'SSH into machines.'),
  readiness: key(readinessSchema, 'How `vm create` finds a VM ready.'),
  join: key(joinSchema, 'How machines become nodes.', { replaces: { externalgrpc: 'k3s' } }),
  guards: key(guardsSchema, 'When not to scale.'),
  autoscaler: key(autoscalerSchema, 'The standalone autoscaler.'),
  pricing: key(pricingSchema, 'Prices, for choosing the cheapest pool.'),
  gpu: key(gpuSchema, 'GPUs, as the Cluster Autoscaler asks for them.'),
  pools: key(z.array(poolSchema).prefault([]), 'The pools.', {
    replaces: { externalgrpc: 'node_groups', kubenodesmith: 'nodePools' },
  }),
});

/** The file with every default in place; values still as they were written. */
export type ConfigFile = z.output<typeof configSchema>;
export type RegionFile = z.output<typeof regionSchema>;
export type PoolFile = z.output<typeof poolSchema>;
export type ImageFile = z.output<typeof imageSchema>;
export type TemplateFile = z.output<typeof templateSchema>;
export type SizeFile = z.output<typeof sizeSchema>;
