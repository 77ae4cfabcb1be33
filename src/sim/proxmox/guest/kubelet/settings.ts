// SPDX-License-Identifier: Apache-2.0
// The kubelet's settings and their validation.
import { durationToMs, parseDuration } from '../../../../model/duration.ts';
import { parseTaint, type Taint } from '../../../../model/taints.ts';
import { JoinRefusedError } from './server-api.ts';

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
  /** Version of the program, as reported in the Node status. */
  readonly version: string;
}

/** The value of a kubelet argument; the last occurrence wins. */
export function kubeletArgument({ args }: KubeletSettings, name: string): string | undefined {
  const found = args.findLast((each) => each.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}

const DEFAULT_CHECK_INTERVAL_MS = 10_000;
const DEFAULT_REPORT_INTERVAL_MS = 300_000;

/** How often the kubelet checks the node status, and how often it reports an unchanged status. */
export function statusIntervals(settings: KubeletSettings): {
  readonly checkMs: number;
  readonly reportMs: number;
} {
  const given = parseDuration(kubeletArgument(settings, 'node-status-update-frequency') ?? '');
  // Like the real kubelet: an explicit frequency sets both intervals.
  if (given.ok) return { checkMs: durationToMs(given.value), reportMs: durationToMs(given.value) };
  return { checkMs: DEFAULT_CHECK_INTERVAL_MS, reportMs: DEFAULT_REPORT_INTERVAL_MS };
}

export function parseLabels({ labels }: KubeletSettings): Record<string, string> {
  const parsed: Record<string, string> = {};
  for (const label of labels) {
    const at = label.indexOf('=');
    const key = at < 0 ? label : label.slice(0, at);
    if (!isAllowedLabel(key)) {
      throw new JoinRefusedError(
        `unknown 'kubernetes.io' or 'k8s.io' label in --node-labels: ${key}`,
      );
    }
    parsed[key] = at < 0 ? '' : label.slice(at + 1);
  }
  return parsed;
}

const RESERVED_PREFIX = /(^|\.)(kubernetes|k8s)\.io$/;
const ALLOWED_PREFIX = /(^|\.)(kubelet|node)\.kubernetes\.io$/;
const ALLOWED_KEYS = new Set([
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

/** A kubelet refuses to start with a `kubernetes.io` or `k8s.io` label that it may not set. */
function isAllowedLabel(key: string): boolean {
  const prefix = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  return !RESERVED_PREFIX.test(prefix) || ALLOWED_PREFIX.test(prefix) || ALLOWED_KEYS.has(key);
}

export function parseTaints({ taints }: KubeletSettings): readonly Taint[] {
  return taints.map((text) => {
    const parsed = parseTaint(text);
    if (!parsed.ok) throw new JoinRefusedError(`invalid taint ${text}: ${parsed.problem}`);
    return parsed.value;
  });
}
