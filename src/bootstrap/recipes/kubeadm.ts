// SPDX-License-Identifier: Apache-2.0
// kubeadm: a JoinConfiguration and `kubeadm join --config`. Runtime, kubelet and kubeadm are the image's. The
// form of the configuration changed with release 1.31, and which release an image has is only known inside it:
// both forms are there, and the script takes the right one.
import { formatLabels } from '../../model/labels.ts';
import { accepted, refused } from '../../model/parsed.ts';
import { type GuestFile, secretFile } from '../guest-file.ts';
import { PROXY_FILE, STATE } from '../paths.ts';
import type { Registration } from '../registration.ts';
import type { KubeadmJoin } from '../seed-input.ts';
import { lines, shellWord } from '../shell-text.ts';
import { yamlText } from '../yaml-text.ts';
import type { Recipe } from './join-plan.ts';
import { endpointOf, probeOf, serverProblem } from './server-url.ts';
import { bootstrapTokenProblem } from './tokens.ts';

const MODULES = '/etc/modules-load.d/pvescaler.conf';
const SYSCTL = '/etc/sysctl.d/90-pvescaler.conf';
const OLD_FORM = `${STATE}/kubeadm-v1beta3.yaml`;
const NEW_FORM = `${STATE}/kubeadm-v1beta4.yaml`;
const RUNTIMES = ['containerd', 'crio'];
const OURS = new Set(['provider-id', 'node-labels', 'register-with-taints', 'hostname-override']);

export const kubeadmRecipe: Recipe<KubeadmJoin> = (join, { registration }) => {
  const problem = problemOf(join);
  if (problem !== undefined) return refused(problem);
  const args = kubeletArgs(join, registration);
  const oldForm = configuration(join, registration, Object.fromEntries(args));
  const newForm = configuration(
    join,
    registration,
    args.map(([name, value]) => ({ name, value })),
  );
  return accepted({
    files: kernelFiles(),
    secrets: [
      secretFile(OLD_FORM, yamlText({ apiVersion: 'kubeadm.k8s.io/v1beta3', ...oldForm })),
      secretFile(NEW_FORM, yamlText({ apiVersion: 'kubeadm.k8s.io/v1beta4', ...newForm })),
    ],
    packages: [],
    script: script(join.server),
    services: RUNTIMES,
  });
};

function problemOf({ server, token, caCertHashes, kubeletArgs }: KubeadmJoin): string | undefined {
  if (caCertHashes.length === 0) {
    return "kubeadm needs the hash of the cluster's CA: without it anybody could be the server";
  }
  const hash = caCertHashes.find((each) => !/^sha256:[0-9a-f]{64}$/.test(each));
  if (hash !== undefined) return `CA hash '${hash}' is not 'sha256:' and 64 hexadecimal digits`;
  const argument = kubeletArgs.find((each) => !/^(--)?[a-z][a-z0-9-]*=/.test(each));
  if (argument !== undefined) return `kubelet argument '${argument}' is not of the form name=value`;
  const taken = kubeletArgs.map(nameAndValue).find(([name]) => OURS.has(name));
  if (taken !== undefined) return `kubelet argument '${taken[0]}' sets what the recipe sets`;
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

function configuration(join: KubeadmJoin, registration: Registration, kubeletExtraArgs: unknown) {
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

/** What kubeadm checks before it joins, and what has to hold after a restart too. */
function kernelFiles(): GuestFile[] {
  return [
    { path: MODULES, content: lines('overlay', 'br_netfilter'), mode: '0644' },
    {
      path: SYSCTL,
      content: lines(
        'net.ipv4.ip_forward = 1',
        'net.bridge.bridge-nf-call-iptables = 1',
        'net.bridge.bridge-nf-call-ip6tables = 1',
      ),
      mode: '0644',
    },
  ];
}

function script(server: string): string {
  return lines(
    'command -v kubeadm >/dev/null || fail "kubeadm is not in this image"',
    'modprobe overlay',
    'modprobe br_netfilter',
    `sysctl -q -p ${SYSCTL}`,
    'swapoff -a',
    'systemctl mask swap.target',
    'systemctl daemon-reload',
    // They were started before the proxy was known.
    `if [ -e ${PROXY_FILE} ]; then`,
    `  for runtime in ${RUNTIMES.join(' ')}; do`,
    '    if systemctl is-active --quiet "$runtime"; then systemctl restart "$runtime"; fi',
    '  done',
    'fi',
    'systemctl enable kubelet.service',
    // The kubelet writes this file when it has its certificate: from then on there is nothing left to join.
    'if [ ! -e /etc/kubernetes/kubelet.conf ]; then',
    // An attempt that failed half-way leaves files that the next one stumbles over.
    '  if [ -e "$state/attempted" ]; then kubeadm reset --force; fi',
    '  touch "$state/attempted"',
    `  wait_for ${shellWord(probeOf(server))}`,
    '  case "$(kubeadm version -o short)" in',
    `    v1.2[0-9].* | v1.30.*) kubeadm join --config ${OLD_FORM} ;;`,
    `    *) kubeadm join --config ${NEW_FORM} ;;`,
    '  esac',
    'fi',
  );
}
