// SPDX-License-Identifier: Apache-2.0
// What a kubelet was told, and what it refuses to be told.
import { durationMs, parseDuration } from '../../../../model/duration.ts';
import { parseTaint, type Taint } from '../../../../model/taints.ts';
import { JoinRefused } from './server-api.ts';

export interface KubeletSettings {
  readonly distribution: 'k3s' | 'rke2' | 'kubeadm';
  readonly nodeName: string;
  /** `key=value` each. */
  readonly labels: readonly string[];
  /** `key=value:effect` each. */
  readonly taints: readonly string[];
  /** `name=value` each, without dashes. */
  readonly args: readonly string[];
  readonly providerId: string | undefined;
  /** Of the program, as it reports itself. */
  readonly version: string;
}

/** The last one given counts. */
export function argument({ args }: KubeletSettings, name: string): string | undefined {
  const found = args.findLast((each) => each.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}

const STATUS_EVERY_MS = 10_000;
const REPORT_EVERY_MS = 300_000;

/** How often a node looks at its status, and how often it reports it though nothing changed. */
export function statusIntervals(settings: KubeletSettings): {
  readonly lookMs: number;
  readonly reportMs: number;
} {
  const given = parseDuration(argument(settings, 'node-status-update-frequency') ?? '');
  // Named explicitly, it is both: so does the kubelet.
  if (given.ok) return { lookMs: durationMs(given.value), reportMs: durationMs(given.value) };
  return { lookMs: STATUS_EVERY_MS, reportMs: REPORT_EVERY_MS };
}

export function labelsOf({ labels }: KubeletSettings): Record<string, string> {
  const parsed: Record<string, string> = {};
  for (const label of labels) {
    const at = label.indexOf('=');
    const key = at < 0 ? label : label.slice(0, at);
    if (!isAllowed(key)) {
      throw new JoinRefused(`unknown 'kubernetes.io' or 'k8s.io' label in --node-labels: ${key}`);
    }
    parsed[key] = at < 0 ? '' : label.slice(at + 1);
  }
  return parsed;
}

const RESERVED = /(^|\.)(kubernetes|k8s)\.io$/;
const OPEN_PREFIX = /(^|\.)(kubelet|node)\.kubernetes\.io$/;
const OPEN_KEYS = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/arch',
  'kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
]);

/** A kubelet does not start with a label of Kubernetes' own that is not meant for it. */
function isAllowed(key: string): boolean {
  const prefix = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  return !RESERVED.test(prefix) || OPEN_PREFIX.test(prefix) || OPEN_KEYS.has(key);
}

export function taintsOf({ taints }: KubeletSettings): readonly Taint[] {
  return taints.map((text) => {
    const parsed = parseTaint(text);
    if (!parsed.ok) throw new JoinRefused(`invalid taint ${text}: ${parsed.problem}`);
    return parsed.value;
  });
}
