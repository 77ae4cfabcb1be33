// SPDX-License-Identifier: Apache-2.0
// kubeadm: a JoinConfiguration and `kubeadm join --config`. The image provides runtime, kubelet and kubeadm.
// The configuration format changed with release 1.31, and the release in the image is known only inside the
// guest: both formats are written, and the script chooses.
import { formatLabels } from '../../model/labels.ts';
import { accepted, refused } from '../../model/parsed.ts';
import { quoteShell } from '../../model/quote-shell.ts';
import { formatYaml } from '../format-yaml.ts';
import {
  type GuestFile,
  joinLines,
  PROXY_FILE,
  STATE_DIRECTORY,
  secretFile,
} from '../guest-file.ts';

import type { Registration } from '../registration.ts';
import type { KubeadmJoin } from '../seed-input.ts';
import { bootstrapTokenProblem, endpointOf, probeUrl, serverProblem } from './join-parameters.ts';
import type { Recipe } from './join-plan.ts';

const MODULES = '/etc/modules-load.d/pvescaler.conf';
const SYSCTL = '/etc/sysctl.d/90-pvescaler.conf';
const OLD_FORM = `${STATE_DIRECTORY}/kubeadm-v1beta3.yaml`;
const NEW_FORM = `${STATE_DIRECTORY}/kubeadm-v1beta4.yaml`;
const RUNTIMES = ['containerd', 'crio'];
const RESERVED_KUBELET_ARGS = new Set([
  'provider-id',
  'node-labels',
  'register-with-taints',
  'hostname-override',
]);

export const kubeadmRecipe: Recipe<KubeadmJoin> = (join, { registration }) => {
  const problem = kubeadmProblem(join);
  if (problem !== undefined) return refused(problem);
  const args = kubeletArgs(join, registration);
  const oldForm = joinConfiguration(join, registration, Object.fromEntries(args));
  const newForm = joinConfiguration(
    join,
    registration,
    args.map(([name, value]) => ({ name, value })),
  );
  return accepted({
    files: kernelFiles(),
    secrets: [
      secretFile(OLD_FORM, formatYaml({ apiVersion: 'kubeadm.k8s.io/v1beta3', ...oldForm })),
      secretFile(NEW_FORM, formatYaml({ apiVersion: 'kubeadm.k8s.io/v1beta4', ...newForm })),
    ],
    packages: [],
    script: renderScript(join.server),
    afterJoin: '',
    services: RUNTIMES,
  });
};

function kubeadmProblem({
  server,
  token,
  caCertHashes,
  kubeletArgs,
}: KubeadmJoin): string | undefined {
  if (caCertHashes.length === 0) {
    return "kubeadm needs the hash of the cluster's CA; without it the server cannot be authenticated";
  }
  const hash = caCertHashes.find((each) => !/^sha256:[0-9a-f]{64}$/.test(each));
  if (hash !== undefined) return `CA hash '${hash}' must be 'sha256:' and 64 hexadecimal digits`;
  const argument = kubeletArgs.find((each) => !/^(--)?[a-z][a-z0-9-]*=/.test(each));
  if (argument !== undefined) return `kubelet argument '${argument}' must have the form name=value`;
  const taken = kubeletArgs.map(nameAndValue).find(([name]) => RESERVED_KUBELET_ARGS.has(name));
  if (taken !== undefined) return `kubelet argument '${taken[0]}' is reserved: the recipe sets it`;
  return serverProblem(server) ?? bootstrapTokenProblem(token);
}

function kubeletArgs(join: KubeadmJoin, registration: Registration): [string, string][] {
  return [
    ['provider-id', registration.providerId],
    ['node-labels', formatLabels(registration.kubeletLabels)],
    ...join.kubeletArgs.map(nameAndValue),
  ];
}

function nameAndValue(argument: string): [string, string] {
  const at = argument.indexOf('=');
  return [argument.slice(0, at).replace(/^--/, ''), argument.slice(at + 1)];
}

function joinConfiguration(
  join: KubeadmJoin,
  registration: Registration,
  kubeletExtraArgs: unknown,
) {
  return {
    kind: 'JoinConfiguration',
    discovery: {
      bootstrapToken: {
        apiServerEndpoint: endpointOf(join.server),
        token: join.token,
        caCertHashes: join.caCertHashes,
      },
    },
    nodeRegistration: {
      name: registration.nodeName,
      taints: registration.taints.map(({ key, value, effect }) => ({
        key,
        ...(value !== '' && { value }),
        effect,
      })),
      kubeletExtraArgs,
    },
  };
}

/** Kernel settings that kubeadm checks before the join and that must survive a reboot. */
function kernelFiles(): GuestFile[] {
  return [
    { path: MODULES, content: joinLines('overlay', 'br_netfilter'), mode: '0644' },
    {
      path: SYSCTL,
      content: joinLines(
        'net.ipv4.ip_forward = 1',
        'net.bridge.bridge-nf-call-iptables = 1',
        'net.bridge.bridge-nf-call-ip6tables = 1',
      ),
      mode: '0644',
    },
  ];
}

function renderScript(server: string): string {
  return joinLines(
    'command -v kubeadm >/dev/null || fail "kubeadm is not in this image"',
    'modprobe overlay',
    'modprobe br_netfilter',
    `sysctl -q -p ${SYSCTL}`,
    'swapoff -a',
    'systemctl mask swap.target',
    'systemctl daemon-reload',
    // The runtime was started before the proxy was configured.
    `if [ -e ${PROXY_FILE} ]; then`,
    `  for runtime in ${RUNTIMES.join(' ')}; do`,
    '    if systemctl is-active --quiet "$runtime"; then systemctl restart "$runtime"; fi',
    '  done',
    'fi',
    'systemctl enable kubelet.service',
    // The kubelet writes this file when it has its certificate: then the node has joined.
    'if [ ! -e /etc/kubernetes/kubelet.conf ]; then',
    // A failed attempt leaves files that make the next one fail.
    '  if [ -e "$state/attempted" ]; then kubeadm reset --force; fi',
    '  touch "$state/attempted"',
    `  wait_for ${quoteShell(probeUrl(server))}`,
    '  case "$(kubeadm version -o short)" in',
    `    v1.2[0-9].* | v1.30.*) kubeadm join --config ${OLD_FORM} ;;`,
    `    *) kubeadm join --config ${NEW_FORM} ;;`,
    '  esac',
    'fi',
  );
}
