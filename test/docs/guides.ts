// SPDX-License-Identifier: Apache-2.0
// Which test runs each command of the documentation, and which commands none runs. commands.test.ts fails for a command
// that is in neither. A site runs sections of the guides: their `sh` blocks are one bash script on simulated hosts. In
// `npm test` the cluster is simulated, and kubectl and helm are replaced by nothing; `npm run test:e2e` runs the same
// sites with the real programs and a real control plane.
export interface SiteSection {
  /** `file#heading` */
  readonly at: string;
  /** Text of the section and what runs in its place, such as the name of a machine that exists. */
  readonly changes: readonly (readonly [documented: string, run: string])[];
}

export interface Site {
  readonly name: string;
  /** Programs without which the site does not run. */
  readonly needs?: readonly string[];
  /** Sections of the guides, and what a reader does between them. */
  readonly steps: readonly (SiteSection | string)[];
}

/** Commands that no test runs, by how they begin: why, and what checks them instead. A site replaces them by nothing. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  'docker build': 'needs a container engine; test/deploy/image.test.ts follows the Dockerfile',
  'docker push': 'needs a container engine and a registry',
  'helm repo add': 'needs the chart repository of the Cluster Autoscaler',
  'helm upgrade --install cluster-autoscaler':
    'needs that chart; test/deploy/guide.test.ts compares its values, test/e2e runs the real Cluster Autoscaler',
  'helm --namespace pvescaler uninstall cluster-autoscaler': 'needs that chart',
  'kubectl apply -f deploy/argocd':
    'needs Argo CD; test/e2e/chart.test.ts sends the file to its definitions',
  'kubectl apply -f deploy/cert-manager':
    'needs cert-manager; test/e2e/chart.test.ts sends the file to its definitions',
  'kubectl -n pvescaler wait --for=condition=Ready certificate': 'needs cert-manager',
  'kubectl apply -f deploy/monitoring':
    'needs the Prometheus operator; test/e2e/chart.test.ts sends the files to its definitions',
  'kubectl -n pvescaler exec':
    'needs containers, which simulated guests do not run; its command of pvescaler is run elsewhere',
  'kubectl -n pvescaler logs': 'needs containers, which simulated guests do not run',
  'kubectl -n pvescaler port-forward': 'needs containers, which simulated guests do not run',
  'pveum role delete': 'the simulator has no API for it',
  'pvesm add': 'needs a Proxmox host; the simulator has no API for it',
  'pvesm set': 'needs a Proxmox host; the simulator has no API for it',
  scp: 'needs a Proxmox host',
  'ssh-copy-id': 'needs a Proxmox host',
  useradd: 'needs root',
  chown: 'needs root',
  'systemctl daemon-reload':
    'needs systemd; test/deploy/unit.test.ts has systemd-analyze verify the unit where it is installed',
  'systemctl enable': 'needs systemd; a site starts serve instead',
  'systemctl start': 'needs systemd; a site starts serve instead',
  'systemctl restart': 'needs systemd; a site restarts serve instead',
  'systemctl reload': 'needs systemd; a site sends SIGHUP to serve instead',
  'systemctl status': 'needs systemd',
  'systemctl stop': 'needs systemd; a site stops serve instead',
};

/** Programs that a site replaces by nothing because other tests run their commands. */
export const REPLACED: readonly string[] = ['pveum'];

/** Tests that run the sections without a site; the source of each one names the headings. */
export const RUN_BY_TESTS: Readonly<Record<string, readonly string[]>> = {
  'test/docs/walkthroughs.test.ts': [
    'README.md#Create machines yourself',
    ...[
      'ca-proxmox-externalgrpc',
      'proxmox-autoscaler',
      'The VM creation plan',
      'KubeNodeSmith',
    ].map((heading) => `docs/guides/migrating.md#${heading}`),
  ],
  'test/deploy/proxmox-role.test.ts': [
    'The role on 8.4',
    'The role on 9.x',
    'User, rights and token',
    'Tighter: only the VMs of one resource pool',
  ].map((heading) => `docs/guides/cluster-autoscaler.md#${heading}`),
  'test/fresh-clone/run.sh': [
    'README.md#Sixty seconds',
    'docs/guides/real-proxmox.md#2. The program',
  ],
  'test/deploy/account.test.ts': [
    'docs/guides/real-proxmox.md#1. An account in Proxmox',
    'docs/guides/day-2.md#Rotate tokens and certificates',
    'docs/guides/day-2.md#Remove everything',
  ],
  'test/e2e/walkthrough.test.ts': ['docs/guides/cluster-autoscaler.md#Try it on one machine'],
};

/** For `serve` in the background. */
const SERVED =
  '> serve.log 2>&1 & serve=$!; until [[ $(cat serve.log) == *"drives the fleet"* ]]; do kill -0 $serve; sleep 0.1; done';

function section(at: string, ...changes: SiteSection['changes']): SiteSection {
  return { at: `docs/guides/${at}`, changes };
}

const CLUSTERS = `
pvescaler sim proxmox --cluster hosts.yaml --listen 127.0.0.1:8006 --tls --speed 200 > hosts.log &
test -s home/kubeconfig || pvescaler sim kubernetes --listen 127.0.0.1:6443 --fake-nodes 1 --kubeconfig-out home/kubeconfig > kubernetes.log &
until test -s hosts.log && test -s home/kubeconfig; do sleep 0.1; done
export KUBECONFIG=$PWD/home/kubeconfig`;
/** A working config in place of the one that the reader writes. */
const CONFIG = `
mkdir -p /etc/pvescaler /var/lib/pvescaler
cp config.yaml /etc/pvescaler
echo 00000000-0000-4000-8000-000000000001 > /etc/pvescaler/token
chmod 600 /etc/pvescaler/token`;
/** Machines, whose names are random. */
const NEWEST = '$(pvescaler machines -o name | sed -n /^workers-/p | tail -n 1)';
const NEWEST_TWO = '$(pvescaler machines -o name | sed -n /^workers-/p | tail -n 2)';
/** Exit code 1: warnings. */
const DOCTOR = ['pvescaler doctor\n', 'pvescaler doctor || test $? -eq 1\n'] as const;
const STOP_SERVE = 'kill $serve; wait $serve; rm serve.log';
/** A node for pods that must not run on machines of a pool: a machine without the label of its pool. */
const SERVER_NODE = `
test -z "$KUBECTL" || {
  pvescaler pool scale servers --to 1
  kubectl label nodes --all autoscaler.proxmox/group-
}`;

/** A command that runs until Ctrl-C. */
function untilOutput(command: string): readonly [string, string] {
  const wait = 'until test -s watched.log; do sleep 0.1; done; kill -INT $!; wait $! || true';
  return [command, `${command} > watched.log & ${wait}`];
}

/** A simulator of the documentation, in the background and on a free port. */
function simulator(command: string, port: number): readonly [string, string] {
  const ready = 'until test -s sim.log; do sleep 0.1; done';
  return [command, `rm -f sim.log; ${command} --listen 127.0.0.1:${port} > sim.log & ${ready}`];
}

export const SITES: readonly Site[] = [
  {
    name: 'an installation in mode standalone',
    steps: [
      CLUSTERS,
      section(
        'real-proxmox.md#3. The config',
        ['standalone > /etc/pvescaler/config.yaml', 'standalone > first.yaml'],
        ['pvescaler config validate\n', `${CONFIG}\npvescaler config validate\n`],
        DOCTOR,
      ),
      section(
        'real-proxmox.md#4. Mode standalone',
        ['pvescaler serve\n', `pvescaler serve ${SERVED}\n`],
        untilOutput('pvescaler machines --watch'),
      ),
      STOP_SERVE,
      'test -n "$KUBECTL" && kubectl apply -f pod.json || NODE_TLS_REJECT_UNAUTHORIZED=0 "$NODE" create-pod.mjs',
      section(
        'serve.md#Running pvescaler as a service',
        [
          'serve --config /etc/pvescaler/config.yaml',
          `serve --config /etc/pvescaler/config.yaml ${SERVED}`,
        ],
        // Exit code 2: no machine seems lost. test/cli/serve.test.ts runs both with lost machines.
        ['confirm-lost workers --dry-run ', 'confirm-lost workers --dry-run || test $? -eq 2 '],
        ['confirm-lost workers   ', 'confirm-lost workers || test $? -eq 2 '],
      ),
      STOP_SERVE,
      `
echo '  - { name: old, from: { image: noble }, size: { cpu: 2, memory: 4Gi, disk: 20Gi }, limits: { min: 0, max: 1 } }' >> /etc/pvescaler/config.yaml
pvescaler pool scale old --to 1
cp config.yaml /etc/pvescaler
pvescaler pool scale workers --to 4`,
      section('draining.md#On the command line', ['workers-3f2a91c4', NEWEST]),
      section('kubeadm.md#The template'),
      "sed 's/^  worker: .*//' config.yaml > /etc/pvescaler/config.yaml",
      section('templates.md#Templates'),
      // The simulator ends although guests have joined the cluster.
      'pvescaler pool scale workers --to 1; kill -INT %1; wait %1',
    ],
  },
  {
    name: 'an installation that is changed, upgraded, backed up, moved and removed',
    needs: ['curl', 'install', 'tar'],
    steps: [
      CLUSTERS,
      CONFIG,
      'systemctl start pvescaler',
      SERVER_NODE,
      'cp home/token token',
      section('dashboard.md#JSON'),
      'pvescaler pool scale workers --to 3',
      section('k3s.md#Try it', DOCTOR),
      section('k3s.md#A new release of k3s', ['workers-3f2a91c4', NEWEST]),
      section('day-2.md#Empty a Proxmox host', ['workers-3f2a91c4 workers-0b77d1e5', NEWEST_TWO]),
      section('day-2.md#Change pools and settings'),
      section('day-2.md#Upgrade'),
      section('day-2.md#Roll back', [
        'rm -f state.db ',
        'cp state.db state.db.before-v2\nrm -f state.db ',
      ]),
      'cd "$SITE"',
      section('day-2.md#Back up and restore'),
      section('day-2.md#Move the records into the cluster', [
        'pvescaler state import',
        `records=$(test -n "$KUBECTL" && echo 'kubernetes: {}' || echo 'path: /var/lib/pvescaler/other.db')
        sed "s|^state: .*|state: { $records }|" config.yaml > /etc/pvescaler/config.yaml
        pvescaler state import`,
      ]),
      'echo simulated > pve-root-ca.pem',
      section('day-2.md#Rotate tokens and certificates'),
      section('day-2.md#Move pvescaler to another machine'),
      `
cp /etc/pvescaler/config.yaml pvescaler.yaml
kubectl apply -f node.json`,
      section('migrating.md#The move, for all of them', [
        'doctor --config pvescaler.yaml',
        'doctor --config pvescaler.yaml || test $? -eq 1',
      ]),
      section('day-2.md#Remove everything', [
        'pvescaler orphans --fix',
        'pvescaler pool scale servers --to 0\npvescaler orphans --fix',
      ]),
    ],
  },
  {
    name: 'VMs by hand',
    steps: [
      `
pvescaler sim proxmox --tls --speed 200 --listen 127.0.0.1:8006 > sim.log &
until test -s sim.log; do sleep 0.1; done
export SIM_TOKEN=00000000-0000-4000-8000-000000000001
export PVESCALER_CONFIG=examples/sim/machines.yaml
# A simulated guest has no SSH server.
cp bin/useradd bin/ssh`,
      section('vms.md#VMs by hand'),
    ],
  },
  {
    name: 'the simulators',
    needs: ['curl', 'ssh', 'ssh-keygen'],
    steps: [
      section(
        'simulator.md#Proxmox VE',
        simulator('npx pvescaler sim proxmox --hosts 3 --speed 10', 8006),
      ),
      'kill %1; wait %1',
      'cp examples/decisions/workload.yaml .',
      section(
        'simulator.md#Kubernetes',
        simulator(
          'npx pvescaler sim kubernetes --kubeconfig-out sim.kubeconfig --fake-nodes 2',
          6443,
        ),
      ),
      `
mkdir -p /etc/pvescaler
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key`,
      section('ssh.md#Set up'),
      section(
        'ssh.md#Try it without Proxmox',
        simulator(
          'npx pvescaler sim proxmox --hosts 2 --ssh-key /tmp/sim-key.pub --ssh-listen 127.0.0.1:2201',
          8006,
        ),
        // A reader confirms the host key.
        ['ssh -n ', 'ssh -n -o StrictHostKeyChecking=no -o UserKnownHostsFile=known_hosts '],
      ),
    ],
  },
  {
    name: 'the trial of mode standalone',
    needs: ['kubectl'],
    steps: [
      'export PVESCALER_HTTP_DASHBOARD=127.0.0.1:8081',
      section(
        'standalone.md#Try it on one machine',
        ['sim proxmox ', 'sim proxmox --listen 127.0.0.1:8006 '],
        ['sim kubernetes ', 'sim kubernetes --listen 127.0.0.1:6443 '],
      ),
    ],
  },
  {
    name: 'an installation in the cluster',
    needs: ['curl', 'grep'],
    steps: [
      CLUSTERS,
      CONFIG,
      'systemctl start pvescaler',
      SERVER_NODE,
      // The namespace has the Lease of serve.
      'systemctl stop pvescaler; kubectl delete namespace pvescaler',
      'echo simulated > pve-root-ca.pem',
      section('in-cluster.md#Run pvescaler in the cluster'),
      section('in-cluster.md#Helm'),
      `
test -z "$KUBECTL" || {
  helm uninstall pvescaler --namespace pvescaler
  kubectl delete namespace pvescaler
  kubectl delete -f deploy/crds
}`,
      section('cluster-autoscaler.md#3. The namespace and the Proxmox secret'),
      section('cluster-autoscaler.md#With pvescaler certs'),
      section('cluster-autoscaler.md#5. The config'),
      'systemctl start pvescaler',
      section('cluster-autoscaler.md#6. The server'),
      section('cluster-autoscaler.md#7. The Cluster Autoscaler'),
      section(
        'cluster-autoscaler.md#8. Test it',
        ['grep -i error', '{ grep -i error || true; }'],
        [
          'kubectl get nodes --label-columns autoscaler.proxmox/group --watch',
          'kubectl get nodes --label-columns autoscaler.proxmox/group --watch & sleep 1; kill $! || true',
        ],
      ),
      section('in-cluster.md#Several replicas'),
      section('in-cluster.md#Sample workloads'),
      section('pool-objects.md#Switch it on'),
      section('pool-objects.md#Define pools'),
      section('pool-objects.md#kubectl scale'),
      section('serve.md#As a systemd service', [
        'systemctl daemon-reload',
        `test -z "$KUBECTL" || sed 's|/home/kubeconfig|/etc/pvescaler/kubeconfig|' config.yaml > /etc/pvescaler/config.yaml
        systemctl stop pvescaler
        systemctl daemon-reload`,
      ]),
    ],
  },
];
