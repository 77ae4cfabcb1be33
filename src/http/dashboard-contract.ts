// SPDX-License-Identifier: Apache-2.0
// What the dashboard reads: the state of the fleet as schemas, from which the types of the page and the OpenAPI
// description are derived. Times are wall clock in milliseconds. Nothing in it is secret.
import { z } from 'zod';

const guest = z.object({
  vmId: z.number(),
  name: z.string().optional(),
  kind: z.enum(['machine', 'vm', 'container']).describe('machine: a machine of pvescaler'),
  machine: z.string().optional().describe('id of the machine'),
  isRunning: z.boolean(),
  cpus: z.number(),
  memoryBytes: z.number(),
});

const host = z.object({
  region: z.string(),
  name: z.string(),
  isOnline: z.boolean(),
  cpus: z.number(),
  memoryBytes: z.number(),
  reservedBytes: z.number().describe('memory that placement leaves free'),
  cpuOvercommit: z.number().describe('CPUs that may be assigned for each CPU of the host'),
  guests: z.array(guest),
});

const pool = z.object({
  name: z.string(),
  min: z.number(),
  max: z.number().describe('0: the pool is disabled'),
  target: z.number(),
  ready: z.number(),
  failed: z.number(),
  leaving: z.number().describe('being drained or deleted'),
  isInConfig: z.boolean(),
  problem: z.string().optional().describe('why it creates no machines, or keeps lost ones'),
  pausedUntil: z.number().optional(),
  backedOffUntil: z.number().optional(),
  pricePerHour: z.number().optional().describe('of its machines that exist'),
  costToday: z.number().optional().describe('since midnight UTC, as far as this process has seen'),
});

const machine = z.object({
  id: z.string(),
  name: z.string().optional(),
  pool: z.string(),
  phase: z.string(),
  phases: z
    .array(z.object({ phase: z.string(), at: z.number() }))
    .describe('when it entered each phase, in this order'),
  region: z.string().optional(),
  host: z.string().optional(),
  vmId: z.number().optional(),
  node: z.string().optional(),
  addresses: z.array(z.string()),
  cpu: z.number(),
  memoryBytes: z.number(),
  failure: z.string().optional(),
  drain: z.string().optional().describe('what a drain waits for, or why it was undone'),
  url: z.string().optional().describe('its page in Proxmox'),
});

const pendingPod = z.object({
  name: z.string().describe('namespace/name'),
  where: z
    .string()
    .optional()
    .describe('the node, or the machine being provisioned, that it will run on'),
  reason: z.string().optional().describe('why no machine is created for it'),
});

const plan = z.object({
  at: z.number(),
  steps: z.array(
    z.object({ kind: z.enum(['create', 'drain', 'cancel']), pool: z.string(), reason: z.string() }),
  ),
  refusals: z.array(z.object({ subject: z.string(), code: z.string(), reason: z.string() })),
});

const journalEntry = z.object({
  sequence: z.number(),
  at: z.number(),
  kind: z.enum(['did', 'refused', 'failed', 'saw']),
  reason: z.string(),
  message: z.string(),
  subject: z.record(z.string(), z.string()),
});

const sample = z.object({
  at: z.number(),
  pending: z.number(),
  nodes: z.number(),
  requestedCpu: z.number().describe('cores'),
  allocatableCpu: z.number(),
  requestedMemory: z.number().describe('bytes'),
  allocatableMemory: z.number(),
});

export const dashboardState = z.object({
  at: z.number(),
  version: z.string(),
  mode: z.enum(['standalone', 'externalgrpc']),
  cluster: z.string().optional(),
  isDriver: z.boolean().describe('whether this process drives; another one knows more if not'),
  driver: z.string().optional(),
  problems: z.array(z.string()).describe('what the process waits for or cannot do'),
  hasActions: z.boolean().describe('whether http.dashboardTokenFile is set'),
  hosts: z.array(host),
  pools: z.array(pool),
  machines: z.array(machine),
  pending: z.array(pendingPod),
  plan: plan.optional().describe('of the last decision; mode standalone only'),
  plans: z.array(plan).describe('the last decisions that changed something, newest first'),
  journal: z.array(journalEntry).describe('newest first'),
  samples: z.array(sample),
  timesToReady: z.array(z.object({ at: z.number(), pool: z.string(), seconds: z.number() })),
});

export const scaleRequest = z.object({ to: z.number().int().min(0).max(10_000) });
export const pauseRequest = z.object({
  minutes: z
    .number()
    .min(1)
    .max(7 * 24 * 60),
});
export const actionResult = z.object({ message: z.string() });

/** The data of an event `change`. */
export const stateChange = z.object({
  changed: z
    .record(z.string(), z.unknown())
    .describe('parts of the state that replace the earlier ones; null: it has none any more'),
  machines: z.array(machine).describe('that are new or have changed'),
  removedMachines: z.array(z.string()),
});

export type StateChange = z.infer<typeof stateChange>;
export type DashboardState = z.infer<typeof dashboardState>;
export type DashboardHost = z.infer<typeof host>;
export type DashboardGuest = z.infer<typeof guest>;
export type DashboardPool = z.infer<typeof pool>;
export type DashboardMachine = z.infer<typeof machine>;
export type DashboardPlan = z.infer<typeof plan>;
export type DashboardSample = z.infer<typeof sample>;
