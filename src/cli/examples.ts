// SPDX-License-Identifier: Apache-2.0
// Examples for the help of every command, by its path. A test parses each of them.

/** For the help of pvescaler itself: the way from a config to a running fleet. */
export const FIRST_EXAMPLES = [
  'pvescaler config init -o pvescaler.yaml',
  'pvescaler doctor -c pvescaler.yaml',
  'pvescaler serve -c pvescaler.yaml',
  'pvescaler machines --watch',
];

export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'pvescaler serve': [
    'pvescaler serve -c pvescaler.yaml',
    'pvescaler serve --mode standalone --log-level debug',
  ],
  'pvescaler doctor': ['pvescaler doctor', 'pvescaler doctor --all -o json'],
  'pvescaler selftest': ['pvescaler selftest --pool workers --timeout 15m'],
  'pvescaler pools': ['pvescaler pools', 'pvescaler pools -o json'],
  'pvescaler pool scale': [
    'pvescaler pool scale workers --to 3',
    'pvescaler pool scale workers --to 5 --size cpu=4,memory=8Gi --timeout 20m',
  ],
  'pvescaler pool confirm-lost': [
    'pvescaler pool confirm-lost workers --dry-run',
    'pvescaler pool confirm-lost workers',
  ],
  'pvescaler pool resume': ['pvescaler pool resume workers'],
  'pvescaler pool delete': [
    'pvescaler pool delete old-workers',
    'pvescaler pool delete old-workers --yes --drain-timeout 10m',
  ],
  'pvescaler machines': [
    'pvescaler machines --watch',
    "pvescaler machines --all -o json | jq '.[].phaseSince'",
  ],
  'pvescaler machine show': [
    'pvescaler machine show workers-3fa9c2d1',
    'pvescaler machine show workers-3f',
  ],
  'pvescaler machine delete': [
    'pvescaler machine delete workers-3fa9c2d1 workers-81d07be4',
    'pvescaler machine delete workers-3fa --no-drain --reason "disk is broken"',
  ],
  'pvescaler vm create': [
    'pvescaler vm create --role worker --count 3',
    'pvescaler vm create --role master --cpus 4 --memory 8Gi --disk 40Gi --dry-run',
    'pvescaler vm create --role db --network static --ip 10.0.0.5/24',
  ],
  'pvescaler vm list': [
    'pvescaler vm list',
    'pvescaler vm list -o name | xargs pvescaler vm delete',
  ],
  'pvescaler vm show': ['pvescaler vm show k8s-worker-1', 'pvescaler vm show 1250 -o yaml'],
  'pvescaler vm delete': ['pvescaler vm delete k8s-worker-1 k8s-worker-2'],
  'pvescaler vm ssh': [
    'pvescaler vm ssh k8s-worker-1',
    'pvescaler vm ssh k8s-worker-1 -- journalctl -u kubelet -n 50',
  ],
  'pvescaler vm console': [
    'pvescaler vm console k8s-worker-1',
    'pvescaler vm console 1250 -o json',
  ],
  'pvescaler template build': [
    'pvescaler template build',
    'pvescaler template build ubuntu --host pve1',
  ],
  'pvescaler template sync': ['pvescaler template sync ubuntu --all-hosts'],
  'pvescaler template list': ['pvescaler template list', 'pvescaler template list -o json'],
  'pvescaler template show': ['pvescaler template show ubuntu'],
  'pvescaler template delete': ['pvescaler template delete ubuntu --version 3'],
  'pvescaler plan': ['pvescaler plan', 'pvescaler plan --save plan.json'],
  'pvescaler explain': [
    'pvescaler explain pod default/web-0',
    'pvescaler explain node workers-3fa -o json',
  ],
  'pvescaler replay': ['pvescaler replay plan.json --all'],
  'pvescaler orphans': ['pvescaler orphans', 'pvescaler orphans --fix --timeout 10m'],
  'pvescaler orphans adopt': ['pvescaler orphans adopt 1250 --pool workers --yes'],
  'pvescaler orphans forget': ['pvescaler orphans forget 1250 --region lab --yes'],
  'pvescaler certs': [
    'pvescaler certs -o certs',
    'pvescaler certs -o certs --name scaler.example 10.0.0.5 --days 90 --force',
  ],
  'pvescaler config validate': [
    'pvescaler config validate pvescaler.yaml',
    'pvescaler config validate --online -o json',
  ],
  'pvescaler config show': [
    'pvescaler config show pvescaler.yaml',
    'pvescaler config show -o table',
  ],
  'pvescaler config init': [
    'pvescaler config init -o pvescaler.yaml',
    'pvescaler config init --mode standalone --full',
  ],
  'pvescaler config import': [
    'pvescaler config import --from kubenodesmith config.yaml -o pvescaler.yaml',
  ],
  'pvescaler config schema': ['pvescaler config schema > config.schema.json'],
  'pvescaler state show': ['pvescaler state show', 'pvescaler state show --state state.db -o json'],
  'pvescaler state journal': [
    'pvescaler state journal --pool workers --limit 20',
    'pvescaler state journal --machine workers-3fa9c2d1 -o json',
  ],
  'pvescaler state export': [
    'pvescaler state export state.json',
    'pvescaler state export --live --journal > backup.json',
  ],
  'pvescaler state import': [
    'pvescaler state import state.json -c new.yaml',
    'pvescaler state import state.json --state new.db -o json',
  ],
  'pvescaler sim proxmox': [
    'pvescaler sim proxmox --hosts 3 --speed 20 --tls',
    'pvescaler sim proxmox --cluster cluster.yaml --listen 127.0.0.1:0 -o json',
  ],
  'pvescaler sim kubernetes': ['pvescaler sim kubernetes --kubeconfig-out sim.kubeconfig'],
  'pvescaler completion': ['source <(pvescaler completion bash)'],
};
