// SPDX-License-Identifier: Apache-2.0
// The schemas of the stored records, with the texts that `kubectl explain` prints.
import { DRAIN_STATES, type Drain } from '../../model/drain.ts';
import type { Intent, VmIntent } from '../../model/intent.ts';
import {
  type HostRef,
  type Machine,
  type MachineFailure,
  type MachineSize,
  PHASES,
  type Placement,
  TASK_KINDS,
  type TaskInProgress,
} from '../../model/machine.ts';
import type {
  FailedRemovals,
  LearnedAllocatable,
  LostMachines,
  PoolBackoff,
  PoolPause,
  PoolScaling,
  PoolState,
  ReplacementInProgress,
} from '../../model/pool.ts';
import type { TemplateVersion, VmNetwork, VmRequest, VmSource } from '../../model/role.ts';
import {
  choice,
  flag,
  integer,
  list,
  map,
  number,
  object,
  optional,
  type Schema,
  text,
  time,
} from './schema.ts';

/** All fields of all members of a union. */
type FieldsOf<T> = { readonly [K in T extends unknown ? keyof T : never]?: unknown };

const machineIds = (description: string) =>
  list(description, text('Id of a machine: the name of its ProxmoxMachine.'));

const size = object<MachineSize>('Size of the VM.', {
  cpu: number('Virtual CPUs.'),
  memoryBytes: number('Memory in bytes.'),
  diskBytes: number('Root disk in bytes.'),
});

const host = (description: string): Schema =>
  object<HostRef>(description, {
    region: text('Region: a Proxmox cluster, as the config names it.'),
    host: text('Name of the Proxmox host.'),
  });

const vm = object<VmRequest>('What a person asked for; only for VMs that belong to no pool.', {
  from: object<FieldsOf<VmSource>>('What the disk of the VM is made from.', {
    kind: optional(choice('Kind of the source.', ['image', 'template', 'netboot'])),
    image: optional(text('Name of the image in the config.')),
    template: optional(text('Name of the template in the config.')),
    clone: optional(choice('How the template is cloned.', ['full', 'linked'])),
  }),
  regions: optional(list('Regions that the VM may be placed in; absent: all.', text('A region.'))),
  vmId: optional(integer('The requested VM id; absent: any free one.')),
  strategy: optional(text('Placement strategy; absent: that of the config.')),
  network: optional(
    object<FieldsOf<VmNetwork>>('Addresses; absent: as configured.', {
      kind: optional(choice('How the VM gets its address.', ['dhcp', 'static'])),
      address: optional(text('Static address in CIDR form.')),
      gateway: optional(text('Default gateway.')),
      dns: optional(list('Name servers.', text('Address of a name server.'))),
    }),
  ),
  template: optional(
    object<TemplateVersion>('The template that is built from this VM.', {
      name: text('Name of the template in the config.'),
      version: integer('Version that is built.'),
    }),
  ),
});

/** What never changes. The id is the name of the object unless it is given. */
export type MachineSpecField =
  | 'id'
  | 'pool'
  | 'size'
  | 'requestedAt'
  | 'intent'
  | 'requiredHost'
  | 'vm'
  | 'isSelftest';

export const machineSpec = object<Partial<Pick<Machine, MachineSpecField>>>(
  'What was requested. It cannot be changed.',
  {
    id: optional(text('Id of the machine, if it is not the name of this object.')),
    pool: optional(text('Pool of the machine; `role:` and a role for a VM of no pool.')),
    size: optional(size),
    requestedAt: optional(time('When the machine was requested.')),
    intent: optional(text('ProxmoxMachineRequest that requested the machine.')),
    requiredHost: optional(host('The only host that the machine may be placed on.')),
    vm: optional(vm),
    isSelftest: optional(flag('Whether `pvescaler selftest` created it.')),
  },
);

const drain = object<Partial<Drain>>('The drain of its Node, running or last.', {
  machine: optional(text('Id of the machine, if it is not the name of this object.')),
  nodeName: optional(text('Name of the Node.')),
  nodeUid: optional(text('Uid of the Node.')),
  state: optional(choice('How far the drain is.', DRAIN_STATES)),
  stateSince: optional(time('Since when.')),
  intent: optional(text('ProxmoxMachineRequest that requested the drain last.')),
  requestedBy: optional(text('Who requested it: autoscaler, cluster-autoscaler, cli.')),
  reason: optional(text('Why it was requested.')),
  requestedAt: optional(time('When it was requested.')),
  timeoutMs: optional(number('Milliseconds after which the drain is undone or forced.')),
  isCordonedByDrain: optional(
    flag('Whether the drain cordoned the Node; undoing it then uncordons it.'),
  ),
  blockedBy: optional(
    list(
      'What the drain waits for.',
      object<Drain['blockedBy'][number]>('A pod, a volume or a Proxmox region.', {
        object: text('A pod as namespace/name, a volume or a Proxmox region.'),
        reason: text('Why it blocks the drain.'),
      }),
    ),
  ),
  undo: optional(
    object<NonNullable<Drain['undo']>>('Set when the drain is being undone.', {
      cause: choice('Why, in one word.', ['cancelled', 'changed', 'timed-out']),
      message: text('Why, in one sentence.'),
    }),
  ),
});

const placement = object<Placement>('Where the VM is, decided before it is created.', {
  region: text('Region: a Proxmox cluster, as the config names it.'),
  host: text('Name of the Proxmox host.'),
  vmId: integer('VM id on Proxmox.'),
  name: text('Name of the VM, of its guest and of its Node.'),
  diskStorage: text('Storage of the root disk.'),
  addresses: list('Static addresses in CIDR form; empty with DHCP.', text('An address.')),
  hasRegionInMarker: optional(flag("Whether the VM's ownership marker names the region.")),
});

const failure = object<MachineFailure>('Why it failed.', {
  code: text('Error code, as in the reference of errors.'),
  message: text('The error.'),
  at: time('When it failed.'),
  phase: text('The phase in which it failed.'),
});

type MachineStatus = Partial<Omit<Machine, Exclude<MachineSpecField, 'requestedAt'>>> & {
  readonly drain?: Drain;
};

export const machineStatus = object<MachineStatus>('What pvescaler knows about the machine.', {
  phase: optional(choice('Phase of its life.', PHASES)),
  phaseSince: optional(time('When it entered the phase.')),
  phaseTimes: optional(map('When it last entered each phase.', time('When it entered it.'))),
  requestedAt: optional(
    time('Counts instead of spec.requestedAt, which was written with a clock that was ahead.'),
  ),
  placement: optional(placement),
  placedAt: optional(time('When it was placed; the provision timeout counts from here.')),
  configured: optional(flag('Whether the VM has its identity and its settings.')),
  task: optional(
    object<TaskInProgress>('The Proxmox task that was started last.', {
      upid: text('Id of the task.'),
      kind: optional(choice('What the task does.', Object.keys(TASK_KINDS))),
      host: optional(text('The host that runs it.')),
      startedAt: time('When it was started.'),
    }),
  ),
  guestAddresses: optional(
    list('Addresses that the guest has by DHCP, in CIDR form.', text('An address.')),
  ),
  seedVolume: optional(text('Volume of the seed ISO, while it exists.')),
  nodeName: optional(text('Name of its Node.')),
  nodeUid: optional(text('Uid of its Node.')),
  providerId: optional(text('Provider id of its Node.')),
  attempts: optional(integer('Failed attempts in this phase.')),
  failure: optional(failure),
  diagnostics: optional(
    object<NonNullable<Machine['diagnostics']>>('What the guest reported before it was stopped.', {
      at: time('When it was read.'),
      lines: list('Lines of its logs, without secrets.', text('A line.')),
      error: optional(text('Why nothing could be read.')),
    }),
  ),
  missingSince: optional(time('Since when the VM of a ready machine has been missing.')),
  deletionReason: optional(text('Why it is being deleted, or was.')),
  isVmLeft: optional(
    flag(
      'Whether its VM was left alone and still has its addresses, although the machine is over.',
    ),
  ),
  drain: optional(drain),
});

export const requestSpec = object<Omit<FieldsOf<Intent>, 'state' | 'failure'>>(
  'The request. It cannot be changed.',
  {
    id: optional(text('Id of the request, if it is not the name of this object.')),
    kind: optional(
      choice('What is requested.', [
        'create',
        'delete',
        'drain',
        'cancel',
        'cancel-drain',
        'resume',
        'adopt',
        'forget',
        'destroy',
      ]),
    ),
    pool: optional(text('Pool of the machines; `role:` and a role for VMs of no pool.')),
    requestedAt: optional(time('When it was requested.')),
    requestedBy: optional(text('Who requested it: cluster-autoscaler, autoscaler, cli, minimum.')),
    reason: optional(text('Why, in one sentence.')),
    machines: optional(machineIds('The machines, of a creation too: their ids are chosen here.')),
    size: optional(size),
    host: optional(host('The only host that the machines may be placed on.')),
    vm: optional(vm),
    isSelftest: optional(flag('Whether `pvescaler selftest` requested it.')),
    reasons: optional(map('Reasons of single machines, by id.', text('A reason.'))),
    timeoutMs: optional(number('Milliseconds after which a drain is undone or forced.')),
    region: optional(text('Region of the VM that is adopted, forgotten or destroyed.')),
    vmId: optional(integer('Id of that VM.')),
    digest: optional(text('Digest of the configuration of that VM that a person has seen.')),
  },
);

export const requestStatus = object<{
  readonly state?: Intent['state'];
  readonly failure?: VmIntent['failure'];
  readonly requestedAt?: number;
}>('What became of it.', {
  state: optional(choice('`done`: it has no further effect.', ['open', 'done'])),
  failure: optional(
    object<NonNullable<VmIntent['failure']>>('Why it was not carried out.', {
      code: text('Error code, as in the reference of errors.'),
      message: text('The error.'),
    }),
  ),
  requestedAt: optional(
    time('Counts instead of spec.requestedAt, which was written with a clock that was ahead.'),
  ),
});

export const poolStateStatus = object<Partial<PoolState>>('What must survive a restart.', {
  pool: optional(text('Name of the pool, if it is not the name of this object.')),
  pause: optional(
    object<PoolPause>('The autoscaler requests no machines: the last ones did not help.', {
      since: time('Since when.'),
      until: time('Until when.'),
      reason: text('Why.'),
    }),
  ),
  backoff: optional(
    object<PoolBackoff>('No machine is created, because the last ones failed.', {
      failures: integer('How many failed in a row.'),
      since: time('Since when.'),
      until: time('Until when.'),
      code: text('Error code of the last failure.'),
      message: text('The last failure.'),
    }),
  ),
  lost: optional(
    object<LostMachines>('Machines that seem lost, and are too many at once to be deleted.', {
      since: time('Since when.'),
      machines: machineIds('The machines.'),
    }),
  ),
  scaling: optional(
    object<PoolScaling>('What the autoscaler remembers, by machine id.', {
      at: time('When a decision confirmed it.'),
      unneededSince: map('Since when a machine has been unneeded.', time('Since when.')),
      trials: map(
        'Pods that a machine was requested for, until it is known whether it helped one.',
        list('Uids of pods.', text('A uid.')),
      ),
      streak: list('What became of the last machines, if none helped a pod.', text('An outcome.')),
      replacement: optional(
        object<ReplacementInProgress>('Machines that fewer new ones replace.', {
          at: time('When it began, or when the last machine was removed.'),
          replaced: machineIds('The machines that are still to be removed.'),
          added: machineIds('The new machines.'),
        }),
      ),
      failedRemovals: optional(
        map(
          'Removals after which pods needed a new machine, by the uid of their controller.',
          object<FailedRemovals>('Removals one after the other.', {
            count: integer('How many.'),
            until: time('Until when machines with such pods are kept.'),
          }),
        ),
      ),
    }),
  ),
  allocatable: optional(
    map(
      'Allocatable resources of joined nodes, by size.',
      object<LearnedAllocatable>('Allocatable resources.', {
        cpuMilli: number('CPU in thousandths.'),
        memoryBytes: number('Memory in bytes.'),
        ephemeralStorageBytes: number('Ephemeral storage in bytes.'),
        pods: number('Number of pods.'),
        learnedAt: time('When it was learned.'),
      }),
    ),
  ),
});
