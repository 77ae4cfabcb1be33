// SPDX-License-Identifier: Apache-2.0
// Every metric of the product, once. A name, its labels and their meaning are stable: dashboards and alerts name
// them. No label may take values without end: pools, regions, phases, codes and endpoints are few; machines, VM
// ids, nodes and addresses are not, and have no place here.

interface MetricFacts {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

function metric<const Facts extends MetricFacts>(facts: Facts): Facts {
  return facts;
}

const REQUEST_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

export const METRICS = {
  pvescaler_build_info: metric({
    type: 'gauge',
    labels: ['version'],
    help: 'Always 1; the label tells the release.',
  }),
  pvescaler_ready: metric({
    type: 'gauge',
    labels: [],
    help: '1 while /readyz answers 200.',
  }),
  pvescaler_leader: metric({
    type: 'gauge',
    labels: [],
    help: '1 while this process drives the fleet, 0 while another one does or nobody can.',
  }),
  pvescaler_rounds_total: metric({
    type: 'counter',
    labels: ['outcome'],
    help: 'Rounds of this process: `done`, or `trouble` when a round ended early.',
  }),
  pvescaler_round_duration_seconds: metric({
    type: 'histogram',
    labels: [],
    help: 'How long a round took, from reading everything to the last step.',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
  }),
  pvescaler_view_age_seconds: metric({
    type: 'gauge',
    labels: ['side', 'region'],
    help: 'Age of the last fresh reading by `side` (`proxmox`, `kubernetes`); a stale side decides nothing. `region` is empty for Kubernetes.',
  }),
  pvescaler_machines: metric({
    type: 'gauge',
    labels: ['pool', 'phase'],
    help: 'Machines by pool and phase.',
  }),
  pvescaler_grpc_calls_total: metric({
    type: 'counter',
    labels: ['rpc', 'code'],
    help: 'Calls of the Cluster Autoscaler by RPC and outcome (`OK`, else the name of the gRPC status).',
  }),
  pvescaler_grpc_call_duration_seconds: metric({
    type: 'histogram',
    labels: ['rpc'],
    help: 'How long a call of the Cluster Autoscaler took to answer.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
  }),
  pvescaler_pool_target: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Machines that the pool wants: those there and on their way, without those that leave.',
  }),
  pvescaler_pool_limit: metric({
    type: 'gauge',
    labels: ['pool', 'bound'],
    help: 'The configured limits of the pool: `min`, `max`.',
  }),
  pvescaler_pool_backoff_seconds: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'How long the pool still makes no machine because new ones failed; 0 when it may.',
  }),
  pvescaler_pool_failures_in_a_row: metric({
    type: 'gauge',
    labels: ['pool'],
    help: 'Failures that the back-off of the pool counts; 0 when it is not backed off.',
  }),
  pvescaler_intents_open: metric({
    type: 'gauge',
    labels: [],
    help: 'What was asked for and nobody has taken up yet.',
  }),
  pvescaler_journal_entries_total: metric({
    type: 'counter',
    labels: ['kind', 'reason'],
    help: 'Entries that this process wrote to the journal, by kind (`did`, `refused`, `failed`, `saw`) and reason, a stable word or error code.',
  }),
  pvescaler_proxmox_requests_total: metric({
    type: 'counter',
    labels: ['region', 'endpoint', 'outcome'],
    help: 'Requests to Proxmox by endpoint (method and path with names taken out) and outcome: `2xx` to `5xx`, or the error class.',
  }),
  pvescaler_proxmox_request_duration_seconds: metric({
    type: 'histogram',
    labels: ['region', 'endpoint'],
    help: 'Until the head of the answer was there, or the request had failed.',
    buckets: REQUEST_BUCKETS,
  }),
  pvescaler_kubernetes_calls_total: metric({
    type: 'counter',
    labels: ['call', 'outcome'],
    help: 'Calls to Kubernetes by what was asked (`changeNode`, `renewLease`, …) and outcome: `ok` or the error class.',
  }),
  pvescaler_kubernetes_call_duration_seconds: metric({
    type: 'histogram',
    labels: ['call'],
    help: 'How long a call to Kubernetes took, tries in vain included.',
    buckets: REQUEST_BUCKETS,
  }),
  pvescaler_kubernetes_watch_restarts_total: metric({
    type: 'counter',
    labels: ['resource', 'reason'],
    help: 'Watches that ended and were begun anew, by resource and reason.',
  }),
} as const;

export type MetricName = keyof typeof METRICS;

function isMetricName(text: string): text is MetricName {
  return Object.hasOwn(METRICS, text);
}

export const METRIC_NAMES: readonly MetricName[] = Object.keys(METRICS).filter(isMetricName);

export type NameOf<Type extends MetricFacts['type']> = {
  [K in MetricName]: (typeof METRICS)[K]['type'] extends Type ? K : never;
}[MetricName];

export type LabelsOf<Name extends MetricName> = Readonly<
  Record<(typeof METRICS)[Name]['labels'][number], string>
>;
