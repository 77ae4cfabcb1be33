// SPDX-License-Identifier: Apache-2.0
// All metrics of the product. Names, labels and meanings are stable, because dashboards and alerts name them. Every
// label has a bounded set of values: pools, regions, hosts, phases, codes and endpoints, but never machines, VM ids, nodes
// or addresses.

interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

function metric<const Definition extends MetricDefinition>(definition: Definition): Definition {
  return definition;
}

const REQUEST_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
const PROVISIONING_BUCKETS = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1_200] as const;

export const METRICS = {
  pvescaler_build_info: metric({
    type: 'gauge',
    labels: ['version'],
    help: 'Always 1; the label contains the release.',
  }),
  pvescaler_ready: metric({
    type: 'gauge',
    labels: [],
    help: '1 while /readyz returns 200.',
  }),
  pvescaler_leader: metric({
    type: 'gauge',
    labels: [],
    help: '1 while this process is the driver of the fleet, otherwise 0.',
  }),
  pvescaler_config_reloads_total: metric({
    type: 'counter',
    labels: ['outcome'],
    help: 'Readings of a changed config file, and those that a SIGHUP requested, by outcome: `applied`; `unchanged` when no setting differs; `invalid`; `restart` when a key has changed that needs a restart; `failed` when something that the config refers to could not be read.',
  }),
  pvescaler_config_last_reload_successful: metric({
    type: 'gauge',
    labels: [],
    help: '1 while the settings in use are those of the config file, 0 while its last reading was refused.',
  }),
  pvescaler_config_last_reload_success_timestamp_seconds: metric({
    type: 'gauge',
    labels: [],
    help: 'When settings of the config file were last applied, in seconds since 1970; at first the start of the process.',
  }),
  pvescaler_reconciles_total: metric({
    type: 'counter',
    labels: ['outcome'],
    help: 'Reconcile passes of this process by outcome: `success`; `incomplete` when a region could not be read; `error` when a pass ended early; `cancelled` when the lease was lost or the process stops.',
  }),
  pvescaler_reconcile_duration_seconds: metric({
    type: 'histogram',
    labels: [],
    help: 'Duration of a reconcile pass, from the first read to the last step.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  }),
  pvescaler_view_age_seconds: metric({
    type: 'gauge',
    labels: ['source', 'region'],
    help: 'Age of the last successful reading of a source (`proxmox`, `kubernetes`); nothing is decided on a stale one. Before the first reading, the time since this process drives. `region` is empty for Kubernetes.',
  }),
  pvescaler_proxmox_credentials_refused: metric({
    type: 'gauge',
    labels: ['region'],
    help: '1 while the region cannot be read because Proxmox refuses the credentials, they lack a privilege, or its certificate or host key is not trusted; otherwise 0. Absent on standby.',
  }),
  pvescaler_machines: metric({
    type: 'gauge',
    labels: ['pool', 'phase'],
    help: 'Machines by pool and phase.',
  }),
  pvescaler_machine_phase_age_seconds: metric({
    type: 'gauge',
    labels: ['pool', 'phase'],
    help: 'Time since the machine that has been in the phase for the longest entered it, for phases that end by themselves (`requested` to `joining`, `draining`, `deleting`); 0 without such a machine.',
  }),
  pvescaler_machine_failures_total: metric({
    type: 'counter',
    labels: ['pool', 'phase', 'reason'],
    help: 'Machines that failed before they were ready, by the phase in which they failed and the error code.',
  }),
  pvescaler_provisioning_duration_seconds: metric({
    type: 'histogram',
    labels: ['pool'],
    help: 'Time from the request of a machine until it was ready.',
    buckets: PROVISIONING_BUCKETS,
  }),
  pvescaler_provisioning_phase_duration_seconds: metric({
    type: 'histogram',
    labels: ['pool', 'phase'],
    help: 'Time that a machine that became ready had spent in each phase before.',
    buckets: PROVISIONING_BUCKETS,
  }),
  pvescaler_orphans: metric({
    type: 'gauge',
    labels: ['region', 'kind'],
    help: 'What the driver found without its counterpart, by kind as in `pvescaler orphans`: `vm-without-record`, `half-made-vm`, `damaged-marker`, `vm-left-alone`, `seed-without-machine`, `node-without-vm`. A VM that only has an id of the range of the region does not count. Absent on standby.',
  }),
  pvescaler_host_free_memory_bytes: metric({
    type: 'gauge',
    labels: ['region', 'host'],
    help: 'Memory of the host that new machines may use, after the reserve and the machines that wait for a place; of the pool that may use the most. 0 when the host takes no machine. Absent on standby.',
  }),
  pvescaler_host_free_cpus: metric({
    type: 'gauge',
    labels: ['region', 'host'],
    help: 'vCPUs that new machines may use on the host, overcommit included; otherwise like the memory.',
  }),
  pvescaler_grpc_calls_total: metric({
    type: 'counter',
    labels: ['rpc', 'code'],
    help: 'RPCs of the Cluster Autoscaler by method and gRPC status name.',
  }),
  pvescaler_grpc_call_duration_seconds: metric({
    type: 'histogram',
    labels: ['rpc'],
    help: 'Duration of an RPC of the Cluster Autoscaler.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
  }),
  pvescaler_pool_target_size: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Target size of the pool: existing and requested machines, without those being deleted.',
  }),
  pvescaler_pool_limit: metric({
    type: 'gauge',
    labels: ['pool', 'bound'],
    help: 'Configured limits of the pool: `min`, `max`.',
  }),
  pvescaler_pool_backoff_seconds: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Time left until the pool creates machines again after failures; 0 when it is not backed off.',
  }),
  pvescaler_pool_consecutive_failures: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Consecutive failures that the back-off of the pool is based on; 0 when it is not backed off.',
  }),
  pvescaler_pool_lost_machines: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Machines that seem lost and are not deleted, because they are too many at once; `pvescaler pool confirm-lost` deletes them.',
  }),
  pvescaler_removed_pool_machines: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Machines of a pool that is not in the config any more; `pvescaler pool delete` deletes them.',
  }),
  pvescaler_drains_total: metric({
    type: 'counter',
    labels: ['pool', 'outcome'],
    help: 'Drains that this process ended, by outcome: `completed`; `forced` when the machine is deleted although it is not drained; `timed_out`, `cancelled` and `undone` (the node is needed, or has changed) when the machine is kept.',
  }),
  pvescaler_drain_duration_seconds: metric({
    type: 'histogram',
    labels: ['pool', 'outcome'],
    help: 'Time from the request of a drain to its end.',
    buckets: [1, 5, 10, 30, 60, 120, 300, 600, 1_200, 3_600],
  }),
  pvescaler_pool_pause_seconds: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Time left until the autoscaler requests machines of the pool again, because its last machines helped no pod; 0 when it is not paused. `pvescaler pool resume` ends the pause.',
  }),
  pvescaler_autoscaler_decisions_total: metric({
    type: 'counter',
    labels: ['outcome'],
    help: 'Decisions of the standalone autoscaler: `change` when machines are requested or removed, `no-change`, `error` when it could not decide.',
  }),
  pvescaler_autoscaler_decision_duration_seconds: metric({
    type: 'histogram',
    labels: [],
    help: 'Time from the observed cluster to the plan.',
    buckets: REQUEST_BUCKETS,
  }),
  pvescaler_autoscaler_pending_pods: metric({
    type: 'gauge',
    labels: ['state'],
    help: 'Pending pods in the last decision: `fitExisting` on a Node, `fitProvisioning` on a machine being provisioned, `fitNew` on a machine that was requested, or `unplaced`.',
  }),
  pvescaler_autoscaler_unneeded_machines: metric({
    type: 'gauge',
    labels: [],
    help: 'Machines that were unneeded in the last decision.',
  }),
  pvescaler_intents_open: metric({
    type: 'gauge',
    labels: [],
    help: 'Intents that the driver has not yet turned into machine changes.',
  }),
  pvescaler_journal_entries_total: metric({
    type: 'counter',
    labels: ['kind', 'reason'],
    help: 'Entries that this process wrote to the journal, by kind (`did`, `refused`, `failed`, `saw`) and reason (a stable name or error code).',
  }),
  pvescaler_proxmox_requests_total: metric({
    type: 'counter',
    labels: ['region', 'endpoint', 'outcome'],
    help: 'Requests to Proxmox by endpoint (method and path with placeholders for names) and outcome: `2xx` to `5xx`, or the error class.',
  }),
  pvescaler_proxmox_request_duration_seconds: metric({
    type: 'histogram',
    labels: ['region', 'endpoint'],
    help: 'Time until the whole response arrived or the request failed.',
    buckets: REQUEST_BUCKETS,
  }),
  pvescaler_kubernetes_calls_total: metric({
    type: 'counter',
    labels: ['method', 'outcome'],
    help: 'Calls to Kubernetes by method (`changeNode`, `renewLease`, …) and outcome: `ok` or the error class.',
  }),
  pvescaler_kubernetes_call_duration_seconds: metric({
    type: 'histogram',
    labels: ['method'],
    help: 'Duration of a call to Kubernetes, retries included.',
    buckets: REQUEST_BUCKETS,
  }),
  pvescaler_kubernetes_watch_restarts_total: metric({
    type: 'counter',
    labels: ['resource', 'reason'],
    help: 'Watches that ended and were started again, by resource and reason.',
  }),
} as const;

export type MetricName = keyof typeof METRICS;

function isMetricName(text: string): text is MetricName {
  return Object.hasOwn(METRICS, text);
}

export const METRIC_NAMES: readonly MetricName[] = Object.keys(METRICS).filter(isMetricName);

export type MetricNameOf<Type extends MetricDefinition['type']> = {
  [K in MetricName]: (typeof METRICS)[K]['type'] extends Type ? K : never;
}[MetricName];

export type MetricLabelsOf<Name extends MetricName> = Readonly<
  Record<(typeof METRICS)[Name]['labels'][number], string>
>;
