// SPDX-License-Identifier: Apache-2.0
// All error codes of the product. A code is never renamed or reused, because scripts, alerts and runbooks name it.
// The class says which kind of failure it is; `retry` says when a retry makes sense:
//   never      the same call fails again until an operator acts or the request is corrected
//   backoff    a transient failure: retry with exponential back-off
//   on-change  retry after something has changed (capacity, rights, config)
/* oxlint-disable max-lines -- a table */

export type RetryKind = 'never' | 'backoff' | 'on-change';

export const ERROR_CLASSES = [
  'NotFound',
  'Conflict',
  'NoCapacity',
  'Unauthorized',
  'NotOwned',
  'Unreachable',
  'TimedOut',
  'NotReady',
  'Undone',
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
  /** What the operator does next; the code that raises the error may replace it with a more specific one. */
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
    hint: 'Do nothing if the VM was deleted on purpose; otherwise check the task log in Proxmox.',
  }),
  VOLUME_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Check that the image, disk or ISO named in the message exists on the storage.',
  }),
  TEMPLATE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Build the template on this host with pvescaler template build, or use a template that exists.',
  }),
  STORAGE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Set a storage that exists and is enabled on this host.',
  }),
  HOST_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Compare hosts.allow with the node names that Proxmox shows.',
  }),
  TASK_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Check the VM itself: the task record is gone or belongs to another token.',
  }),
  NODE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Do nothing if the Node was deleted on purpose; otherwise check that its kubelet is running.',
  }),
  KUBERNETES_OBJECT_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Apply the manifests in deploy/: the cluster lacks the object or namespace named in the message.',
  }),
  POOL_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Use the name of a pool from the config file; pvescaler config show lists them.',
  }),
  MACHINE_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Run pvescaler machines to list the existing machines.',
  }),
  PROGRAM_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'on-change',
    hint: 'Install the program named in the message.',
  }),
  RECORD_NOT_FOUND: code({
    class: 'NotFound',
    retry: 'never',
    hint: 'Read the records again: another process removed this one.',
  }),

  RECORD_EXISTS: code({
    class: 'Conflict',
    retry: 'never',
    hint: 'Read the record again: another process created it first.',
  }),
  RECORD_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Read the record again and repeat the change: another process changed it meanwhile.',
  }),
  RECORD_INVALID: code({
    class: 'Conflict',
    retry: 'on-change',
    hint: 'Correct or delete the object named in the message: it was edited, and its record cannot be read.',
  }),
  VM_ID_TAKEN: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Choose another --vmid; an id that pvescaler chose itself is replaced by the next free one.',
  }),
  VM_LOCKED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Wait for the backup, clone or migration that locks the VM, or stop it in Proxmox.',
  }),
  LOCK_TIMED_OUT: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Lower limits.createsPerStorage if this persists: Proxmox is busy with the same VM or storage.',
  }),
  TEMPLATE_IN_USE: code({
    class: 'Conflict',
    retry: 'on-change',
    hint: 'Delete the linked clones first, or keep the template: their disks need it.',
  }),
  VM_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Read the VM again and repeat the change: its configuration changed meanwhile.',
  }),
  KUBERNETES_OBJECT_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Do nothing: the object changed meanwhile, and pvescaler retries.',
  }),
  NODE_CHANGED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Find the controller that keeps changing the Node if this persists; pvescaler retries.',
  }),
  PROVIDER_ID_SET: code({
    class: 'Conflict',
    retry: 'never',
    hint: 'Check for another cloud provider in the cluster: the Node already has a different provider id, which Kubernetes never allows to change.',
  }),
  MACHINE_JOINED: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Read the machine again and use the provider id of its Node: it joined the cluster meanwhile.',
  }),
  LEASE_HELD: code({
    class: 'Conflict',
    retry: 'backoff',
    hint: 'Do nothing: another process holds the lease and drives the fleet.',
  }),

  NO_HOST_FITS: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Free memory or cores on a host, start a host that is offline, add a host, or raise the overcommit in placement.',
  }),
  NO_STORAGE_SPACE: code({
    class: 'NoCapacity',
    retry: 'on-change',
    hint: 'Free space on the storage, or set another storage for disks.',
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
    hint: 'Raise limits.max of the pool to allow more machines.',
  }),

  CREDENTIALS_REFUSED: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Check the token or password: it is wrong, expired or disabled.',
  }),
  PERMISSION_MISSING: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Grant the token the privilege named in the message on the named path; a token with privilege separation needs its own grant.',
  }),
  TLS_NOT_TRUSTED: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Compare the fingerprint with that of the server (on a Proxmox host: pvenode cert info). If it is the same, set it in tls.fingerprints of the region, or set tls.caFile; for Kubernetes, correct the certificate authority in the kubeconfig.',
  }),
  SSH_HOST_KEY_NOT_TRUSTED: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Compare the fingerprint with that of the host, and add the key to the known hosts file if it is the same.',
  }),
  SSH_LOGIN_REFUSED: code({
    class: 'Unauthorized',
    retry: 'on-change',
    hint: 'Add the public key to ~/.ssh/authorized_keys of the user on the host, or set another key or user.',
  }),
  CLIENT_NOT_ALLOWED: code({
    class: 'Unauthorized',
    retry: 'never',
    hint: "Add the client certificate's name to grpc.tls.allow.",
  }),

  VM_NOT_OWNED: code({
    class: 'NotOwned',
    retry: 'never',
    hint: 'Delete the VM yourself if it should go: it has no marker of this cluster, so pvescaler never changes it.',
  }),

  PVE_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check the network, port 8006 and the pveproxy service: no endpoint of the region responds.',
  }),
  PVE_HOST_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check that the host is up and in the Proxmox cluster: the API responds, but this host does not.',
  }),
  PVE_NO_QUORUM: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Bring the hosts of the Proxmox cluster back: without quorum it refuses writes.',
  }),
  KUBERNETES_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check the server in the kubeconfig and the network: the API server does not respond.',
  }),
  SSH_UNREACHABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check that the host is up, that sshd runs on it, and that its port is open.',
  }),
  GUEST_AGENT_SILENT: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check that the image contains qemu-guest-agent and that the guest has booted.',
  }),
  IMAGE_CHECKSUM_UNREADABLE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check checksumUrl of the image and the network to it, or set its checksum instead.',
  }),
  VIEW_STALE: code({
    class: 'Unreachable',
    retry: 'backoff',
    hint: 'Check the connection: the last reading is too old, and pvescaler changes nothing until a new one succeeds.',
  }),

  REQUEST_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'backoff',
    hint: 'Check the load of the server named in the message, and the network to it.',
  }),
  TASK_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'never',
    hint: 'Read the task log in Proxmox; slow storage is the usual cause.',
  }),
  DRIVER_STALLED: code({
    class: 'TimedOut',
    retry: 'never',
    hint: 'Restart pvescaler, unless a supervisor has done it, and report the call that the message names.',
  }),
  PROVISION_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'backoff',
    hint: "Read the VM's console: the machine did not boot within provisionTimeout.",
  }),
  REGISTRATION_TIMED_OUT: code({
    class: 'TimedOut',
    retry: 'backoff',
    hint: 'Check the join service in the guest: the VM runs, but its Node never appeared.',
  }),

  VM_NOT_READY: code({
    class: 'NotReady',
    retry: 'never',
    hint: 'Look at the console of the VM with pvescaler vm console NAME; remove it with pvescaler vm delete NAME.',
  }),

  DRAIN_TIMED_OUT: code({
    class: 'Undone',
    retry: 'on-change',
    hint: 'Resolve what the message names, and run the command again, with a longer --drain-timeout if pods need more time; --no-drain deletes machines with their pods.',
  }),
  DRAIN_UNDONE: code({
    class: 'Undone',
    retry: 'on-change',
    hint: 'The node is as it was before. Run the command again if the machine is to be deleted all the same.',
  }),

  CONFIG_INVALID: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Correct the lines named in the message; pvescaler config validate checks the file without side effects.',
  }),
  CONFIG_UNREADABLE: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Set --config or PVESCALER_CONFIG to a readable file; pvescaler config init writes a first one.',
  }),
  SECRET_UNREADABLE: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Check that the file, variable or Secret named in the message exists, is readable and is not empty.',
  }),
  PARAMETER_REFUSED: code({
    class: 'InvalidConfig',
    retry: 'on-change',
    hint: 'Correct the setting named in the message in the pool or its vmOptions: Proxmox refuses it.',
  }),

  USAGE: code({
    class: 'InvalidRequest',
    retry: 'never',
    hint: 'Run pvescaler --help for the commands and their options.',
  }),
  REQUEST_INVALID: code({
    class: 'InvalidRequest',
    retry: 'never',
    hint: 'Correct the request; nothing was changed.',
  }),

  PVE_TOO_OLD: code({
    class: 'UnsupportedVersion',
    retry: 'on-change',
    hint: 'Upgrade Proxmox VE to 8.4 or newer, or use a template instead of an image.',
  }),
  STORE_SCHEMA_NEWER: code({
    class: 'UnsupportedVersion',
    retry: 'on-change',
    hint: 'Run the newer pvescaler that wrote this database, or restore the copy made before its migration.',
  }),
  FEATURE_NOT_THERE: code({
    class: 'UnsupportedVersion',
    retry: 'on-change',
    hint: 'Check the changelog for a release that supports this.',
  }),

  TASK_FAILED: code({
    class: 'TaskFailed',
    retry: 'backoff',
    hint: 'Read the task log in Proxmox.',
  }),
  BOOTSTRAP_FAILED: code({
    class: 'TaskFailed',
    retry: 'backoff',
    hint: 'Read the cloud-init log in the guest: it did not become a node.',
  }),

  STORE_CORRUPT: code({
    class: 'StoreUnusable',
    retry: 'never',
    hint: 'Move the database aside, together with its -wal and -shm files, and start again: running machines are adopted from Proxmox.',
  }),
  STORE_NOT_INSTALLED: code({
    class: 'StoreUnusable',
    retry: 'on-change',
    hint: 'Install the CustomResourceDefinitions of this version with kubectl apply -f deploy/crds.',
  }),
  STORE_FULL: code({
    class: 'StoreUnusable',
    retry: 'backoff',
    hint: 'Free space on the disk that holds state.path.',
  }),
  STORE_READ_ONLY: code({
    class: 'StoreUnusable',
    retry: 'on-change',
    hint: 'Make the folder of state.path writable for this user, or set another path.',
  }),
  STORE_UNREADABLE: code({
    class: 'StoreUnusable',
    retry: 'on-change',
    hint: 'Check that state.path names a file that this user may open.',
  }),
  STORE_BUSY: code({
    class: 'StoreUnusable',
    retry: 'backoff',
    hint: 'Find a hanging process that has the database open: it has held the lock for too long.',
  }),

  LEASE_LOST: code({
    class: 'LostLeadership',
    retry: 'never',
    hint: 'Do nothing: another process has taken over, and this one stops acting.',
  }),
  CANCELLED: code({
    class: 'Cancelled',
    retry: 'never',
    hint: 'Repeat the command if it was interrupted by mistake; nothing more is done for it.',
  }),
  UNEXPECTED_ANSWER: code({
    class: 'Bug',
    retry: 'never',
    hint: 'Report this with the log: a server sent a response that pvescaler does not understand.',
  }),
  BUG: code({
    class: 'Bug',
    retry: 'never',
    hint: 'Report this with the log: it is a bug in pvescaler.',
  }),
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERROR_CODES, text);
}

/** The codes of a class: a class can be raised only with one of its own codes. */
export type CodeOf<C extends ErrorClass> = {
  [K in ErrorCode]: (typeof ERROR_CODES)[K]['class'] extends C ? K : never;
}[ErrorCode];
