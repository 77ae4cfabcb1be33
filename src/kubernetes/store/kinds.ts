// SPDX-License-Identifier: Apache-2.0
// Which kind of object each collection of the Store is kept in.
import { isVmIntent } from '../../model/intent.ts';
import type { CollectionName, RecordKinds } from '../../ports/record-validators.ts';
import {
  machineSpec,
  machineStatus,
  poolStateStatus,
  requestSpec,
  requestStatus,
} from './record-schemas.ts';
import type { JsonRecord, Schema } from './schema.ts';

export const GROUP = 'pvescaler.dev';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/** A column of `kubectl get`; `isWide`: only with `-o wide`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly path: string;
  readonly description: string;
  readonly isWide?: true;
}

/** The records of one object. */
export type RecordParts = { readonly [N in CollectionName]?: RecordKinds[N] };

/** A record of one collection inside an object. */
export interface RecordPart {
  readonly collection: CollectionName;
  /** The field of the record that is left out where it equals the key. */
  readonly idField?: string;
  /** The field of `status` that has the record; absent: it has the fields of the record itself. */
  readonly statusField?: string;
}

export interface ObjectKind {
  readonly kind: string;
  readonly plural: string;
  readonly shortName: string;
  readonly description: string;
  /** Fields of the record that are in `spec`; the others are in `status`. */
  readonly specFields: readonly string[];
  readonly spec?: Schema;
  readonly status?: Schema;
  /** CEL rules about the whole object or its spec. */
  readonly specRules: readonly { readonly rule: string; readonly message: string }[];
  /** Whether `status` is a subresource, which a creation does not set. */
  readonly hasStatusSubresource: boolean;
  /** The status of an object that has none; such a status is not written at creation. */
  readonly initialStatus?: JsonRecord;
  /** Whether the status of a new object is written at once: it may be the last write for long. */
  readonly isStatusDue?: (parts: RecordParts) => boolean;
  readonly parts: readonly RecordPart[];
  /** Whether the records need no object any more: then only this process remembers them. */
  readonly isOver?: (parts: RecordParts) => boolean;
  readonly columns: readonly PrinterColumn[];
}

const IMMUTABLE = [{ rule: 'self == oldSelf', message: 'spec is immutable' }] as const;

const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  path: '.metadata.creationTimestamp',
  description: 'Time since the object was created.',
};

const MACHINE: ObjectKind = {
  kind: 'ProxmoxMachine',
  plural: 'proxmoxmachines',
  shortName: 'pvm',
  description:
    'A VM on Proxmox that is, or is becoming, a node of this cluster. Written by pvescaler; to remove a machine, use `pvescaler machine delete`: deleting this object does not delete the VM.',
  specFields: Object.keys(machineSpec.properties ?? {}),
  spec: machineSpec,
  status: machineStatus,
  specRules: IMMUTABLE,
  hasStatusSubresource: true,
  // Adopted, imported or failed at once.
  isStatusDue: ({ machines }) => machines?.phase !== 'requested',
  parts: [
    { collection: 'machines', idField: 'id' },
    { collection: 'drains', idField: 'machine', statusField: 'drain' },
  ],
  columns: [
    { name: 'Pool', type: 'string', path: '.spec.pool', description: 'Pool of the machine.' },
    {
      name: 'Phase',
      type: 'string',
      path: '.status.phase',
      description: 'Phase of its life; empty before its VM is created.',
    },
    {
      name: 'Host',
      type: 'string',
      path: '.status.placement.host',
      description: 'Proxmox host of the VM.',
    },
    {
      name: 'VM ID',
      type: 'integer',
      path: '.status.placement.vmId',
      description: 'VM id on Proxmox.',
    },
    { name: 'Node', type: 'string', path: '.status.nodeName', description: 'Name of its Node.' },
    AGE,
    {
      name: 'In Phase',
      type: 'date',
      path: '.status.phaseSince',
      description: 'Time since it entered the phase.',
      isWide: true,
    },
    {
      name: 'Region',
      type: 'string',
      path: '.status.placement.region',
      description: 'Region of the VM.',
      isWide: true,
    },
    {
      name: 'CPU',
      type: 'string',
      path: '.spec.size.cpu',
      description: 'Virtual CPUs.',
      isWide: true,
    },
    {
      name: 'Memory',
      type: 'integer',
      path: '.spec.size.memoryBytes',
      description: 'Memory in bytes.',
      isWide: true,
    },
    {
      name: 'Drain',
      type: 'string',
      path: '.status.drain.state',
      description: 'State of the drain of its Node.',
      isWide: true,
    },
    {
      name: 'Failure',
      type: 'string',
      path: '.status.failure.code',
      description: 'Error code, if it failed.',
      isWide: true,
    },
  ],
};

const REQUEST: ObjectKind = {
  kind: 'ProxmoxMachineRequest',
  plural: 'proxmoxmachinerequests',
  shortName: 'pvmr',
  description:
    'A request to create, delete or drain machines. Written by every replica and by the command line, carried out by the leader, removed when it is done.',
  specFields: Object.keys(requestSpec.properties ?? {}),
  spec: requestSpec,
  status: requestStatus,
  specRules: IMMUTABLE,
  hasStatusSubresource: true,
  initialStatus: { state: 'open' },
  parts: [{ collection: 'intents', idField: 'id' }],
  // The result of a decision about one VM is shown to the person who made it.
  isOver: ({ intents }) => intents?.state === 'done' && !isVmIntent(intents),
  columns: [
    { name: 'Kind', type: 'string', path: '.spec.kind', description: 'What is requested.' },
    { name: 'Pool', type: 'string', path: '.spec.pool', description: 'Pool of the machines.' },
    {
      name: 'Requested By',
      type: 'string',
      path: '.spec.requestedBy',
      description: 'Who requested it.',
    },
    {
      name: 'State',
      type: 'string',
      path: '.status.state',
      description: 'Empty until it is done.',
    },
    AGE,
    {
      name: 'Reason',
      type: 'string',
      path: '.spec.reason',
      description: 'Why it was requested.',
      isWide: true,
    },
    {
      name: 'Failure',
      type: 'string',
      path: '.status.failure.code',
      description: 'Error code, if it was not carried out.',
      isWide: true,
    },
  ],
};

const POOL_STATE: ObjectKind = {
  kind: 'ProxmoxPoolState',
  plural: 'proxmoxpoolstates',
  shortName: 'pvps',
  description: 'What pvescaler remembers about a pool: back-off, pause, learned node sizes.',
  specFields: [],
  status: poolStateStatus,
  specRules: [],
  hasStatusSubresource: false,
  parts: [{ collection: 'pools', idField: 'pool' }],
  columns: [
    {
      name: 'Backoff Until',
      type: 'string',
      path: '.status.backoff.until',
      description: 'No machine is created before.',
    },
    {
      name: 'Paused Until',
      type: 'string',
      path: '.status.pause.until',
      description: 'The autoscaler requests no machine before.',
    },
    AGE,
    {
      name: 'Reason',
      type: 'string',
      path: '.status.backoff.code',
      description: 'Error code of the last failure.',
      isWide: true,
    },
  ],
};

/** The kinds that hold records. Other definitions are added in definitions.ts. */
export const RECORD_KINDS: readonly ObjectKind[] = [MACHINE, REQUEST, POOL_STATE];
