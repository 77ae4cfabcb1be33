// SPDX-License-Identifier: Apache-2.0
// Every error code of the product, once. A code is stable: scripts, alerts and runbooks name it, so it is
// never renamed or reused. The class says whose turn it is; `retry` says what makes trying again sensible:
//   never      the same call will fail again; somebody has to act or the request was wrong
//   backoff    passing trouble: try again, later each time
//   on-change  wait until something changes (room on a host, a right granted, the config), then try again

export type RetryKind = 'never' | 'backoff' | 'on-change';

export const ERROR_CLASSES = [
  'NotFound',
  'Conflict',
  'NoCapacity',
  'Unauthorized',
  'NotOwned',
  'Unreachable',
  'TimedOut',
  'InvalidConfig',
  'InvalidRequest',
  'UnsupportedVersion',
  'TaskFailed',
  'StoreUnusable',
  'LostLeadership',
  'Cancelled',
  'Bug',
] as const;

export type ErrorClass = (typeof ERROR_CLASSES)[number];

interface CodeFacts {
  readonly class: ErrorClass;
  readonly retry: RetryKind;
  /** What the operator should do next, when the place that raises the error knows nothing better. */
  readonly hint: string;
}

function code<C extends ErrorClass>(
  facts: CodeFacts & { readonly class: C },
): CodeFacts & { readonly class: C } {
  return facts;
}

export const ERROR_CODES = {
  VM_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'The VM is gone; nothing to do unless you expected it.',
  }),
  VOLUME_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Check the storage: the image, disk or ISO named is not there.',
  }),
  TEMPLATE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Build the template on this host, or name one that exists.',
  }),
  STORAGE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Name a storage that exists and is enabled on this host.',
  }),
  HOST_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Compare hosts.allow with the node names that Proxmox shows.',
  }),
  TASK_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'The task record is gone or belongs to another token; the VM itself tells what happened.',
  }),
  NODE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'The Kubernetes Node is gone; nothing to do unless you expected it.',
  }),
  KUBERNETES_OBJECT_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'The object or namespace named is not in the cluster; apply the manifests in deploy/.',
  }),
  POOL_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Name a pool from the config file: pvescaler config show lists them.',
  }),
  MACHINE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'pvescaler machines lists the ones there are.',
  }),
  RECORD_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Another process removed it; read again.',
  }),

  RECORD_EXISTS: code({
    class: 'Conflict',
    retry: 'never',
    hint: 'Another process wrote it first; read again and decide anew.',
  }),
  RECORD_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Another process changed it in between; read again and decide anew.',
  }),
  VM_ID_TAKEN: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Another VM took the id first; the next free one is tried.',
  }),
  VM_LOCKED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'A backup, clone or migration holds the VM; wait for it, or end it in Proxmox.',
  }),
  LOCK_TIMED_OUT: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Proxmox is busy with the same VM or storage; lower the creations per storage if it persists.',
  }),
  VM_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Somebody changed the VM in between; read again.',
  }),
  KUBERNETES_OBJECT_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Somebody changed the Kubernetes object in between; it is tried again.',
  }),
  NODE_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Somebody keeps changing the Kubernetes Node at the same time; it is tried again.',
  }),
  PROVIDER_ID_SET: code({
    class: 'Conflict',
    retry: 'never',
    hint: 'The Node has another provider id already, and Kubernetes never lets it change: look for another cloud provider in the cluster.',
  }),
  MACHINE_JOINED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'It became a Node after whoever asks looked at it; look again, it goes by the provider id of its Node now.',
  }),
  LEASE_HELD: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Another process drives the fleet; it does the work.',
  }),

  NO_HOST_FITS: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Free memory or cores on a host, add a host, or allow more over-commit in placement.',
  }),
  NO_STORAGE_SPACE: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Free space on the storage, or name another one for disks.',
  }),
  NO_VM_ID_FREE: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Widen vmIds of the region.',
  }),
  NO_ADDRESS_FREE: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Widen the address pool, or lower limits.max.',
  }),
  POOL_AT_MAXIMUM: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Raise limits.max of the pool if more machines are wanted.',
  }),

  CREDENTIALS_REFUSED: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Check the token or password: it is wrong, expired or disabled.',
  }),
  PERMISSION_MISSING: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Give the token the named privilege on the named path (a separated token needs it itself).',
  }),
  TLS_NOT_TRUSTED: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Set tls.caFile or tls.fingerprints of the region to what the server presents.',
  }),
  CLIENT_NOT_ALLOWED: code({
    class: 'Unauthorized',
    retry: 'never',
    hint: "Add the client certificate's name to grpc.tls.allow.",
  }),

  VM_NOT_OWNED: code({
    class: 'NotOwned',
    retry: 'never',
    hint: "The VM does not carry this cluster's marker; pvescaler never touches it. Remove it yourself if it should go.",
  }),

  PVE_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'No endpoint of the region answers; check network, port 8006 and the pveproxy service.',
  }),
  PVE_HOST_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'The API answers, but this host does not; check that it is up and in the cluster.',
  }),
  PVE_NO_QUORUM: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'The Proxmox cluster has no quorum and refuses writes; bring its hosts back.',
  }),
  KUBERNETES_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: "The API server does not answer; check the kubeconfig's server and the network.",
  }),
  GUEST_AGENT_SILENT: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'The guest agent does not answer (yet); the image must have qemu-guest-agent.',
  }),
  VIEW_STALE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'The last reading is too old to decide on; nothing is done until a fresh one succeeds.',
  }),

  REQUEST_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'backoff',
    hint: 'The peer took too long; look at its load.',
  }),
  TASK_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'never',
    hint: "Look at the task's log in Proxmox; storage is the usual cause.",
  }),
  PROVISION_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'backoff',
    hint: 'The machine did not come up within provisionTimeout; its console tells why.',
  }),
  REGISTRATION_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'backoff',
    hint: 'The guest is up but its Node never appeared; look at the join service in the guest.',
  }),
  DRAIN_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'on-change',
    hint: 'Pods did not leave within drainTimeout; a PodDisruptionBudget is the usual cause.',
  }),

  CONFIG_INVALID: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Correct the lines named; pvescaler config validate checks without doing anything.',
  }),
  CONFIG_UNREADABLE: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Name a readable file by --config or PVESCALER_CONFIG; pvescaler config init writes a first one.',
  }),
  SECRET_UNREADABLE: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Check that the file, variable or Secret named exists, is readable and not empty.',
  }),
  PARAMETER_REFUSED: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Proxmox refuses the setting named; correct it in the pool or its vmOptions.',
  }),

  USAGE: code({
    class: 'InvalidRequest',
    retry: 'never',
    hint: 'pvescaler --help shows the commands and their options.',
  }),
  REQUEST_INVALID: code({
    class: 'InvalidRequest',
    retry: 'never',
    hint: 'The request itself is wrong; nothing was changed.',
  }),

  PVE_TOO_OLD: code({
    class: 'UnsupportedVersion',
    retry: 'on-change',
    hint: 'Upgrade Proxmox VE to 8.4 or newer, or use a template instead of an image.',
  }),
  STORE_SCHEMA_NEWER: code({
    class: 'UnsupportedVersion',
    retry: 'on-change',
    hint: 'A newer pvescaler wrote this database; run that version, or restore the copy made before its migration.',
  }),
  FEATURE_NOT_THERE: code({
    class: 'UnsupportedVersion',
    retry: 'on-change',
    hint: 'This release cannot do that yet; see the changelog.',
  }),

  TASK_FAILED: code({
    class: 'TaskFailed',
    retry: 'backoff',
    hint: "The task's log in Proxmox has the details.",
  }),
  BOOTSTRAP_FAILED: code({
    class: 'TaskFailed',
    retry: 'backoff',
    hint: 'The guest could not be made a node; its cloud-init log has the details.',
  }),

  STORE_CORRUPT: code({
    class: 'StoreUnusable',
    retry: 'never',
    hint: 'Move the database aside, together with its -wal and -shm files, and start again: running machines are adopted from Proxmox.',
  }),
  STORE_FULL: code({
    class: 'StoreUnusable',
    retry: 'backoff',
    hint: 'Free space on the disk that holds state.path.',
  }),
  STORE_READ_ONLY: code({
    class: 'StoreUnusable',
    retry: 'on-change',
    hint: 'Make the folder of state.path writable for this user, or name another path.',
  }),
  STORE_UNREADABLE: code({
    class: 'StoreUnusable',
    retry: 'on-change',
    hint: 'Check that state.path names a file this user may open.',
  }),
  STORE_BUSY: code({
    class: 'StoreUnusable',
    retry: 'backoff',
    hint: 'Another process holds the database for long; look for one that hangs.',
  }),

  LEASE_LOST: code({
    class: 'LostLeadership',
    retry: 'never',
    hint: 'Another process took over; this one stops acting.',
  }),
  CANCELLED: code({
    class: 'Cancelled',
    retry: 'never',
    hint: 'The caller gave up; nothing more is done for it.',
  }),
  UNEXPECTED_ANSWER: code({
    class: 'Bug',
    retry: 'never',
    hint: 'A peer answered in a way pvescaler does not know; please report it with the log.',
  }),
  BUG: code({
    class: 'Bug',
    retry: 'never',
    hint: 'This is a fault in pvescaler; please report it with the log.',
  }),
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** The codes that belong to a class, so that a class can only be raised with one of its own. */
export type CodeOf<C extends ErrorClass> = {
  [K in ErrorCode]: (typeof ERROR_CODES)[K]['class'] extends C ? K : never;
}[ErrorCode];
