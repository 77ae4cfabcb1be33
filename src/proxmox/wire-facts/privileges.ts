// SPDX-License-Identifier: Apache-2.0
// Privileges, built-in roles, and the privilege that each VM option needs.
import type { ApiVersion } from './types.ts';

const COMMON = [
  'Datastore.Allocate',
  'Datastore.AllocateSpace',
  'Datastore.AllocateTemplate',
  'Datastore.Audit',
  'Group.Allocate',
  'Mapping.Audit',
  'Mapping.Modify',
  'Mapping.Use',
  'Permissions.Modify',
  'Pool.Allocate',
  'Pool.Audit',
  'Realm.Allocate',
  'Realm.AllocateUser',
  'SDN.Allocate',
  'SDN.Audit',
  'SDN.Use',
  'Sys.AccessNetwork',
  'Sys.Audit',
  'Sys.Console',
  'Sys.Incoming',
  'Sys.Modify',
  'Sys.PowerMgmt',
  'Sys.Syslog',
  'User.Modify',
  'VM.Allocate',
  'VM.Audit',
  'VM.Backup',
  'VM.Clone',
  'VM.Config.CDROM',
  'VM.Config.CPU',
  'VM.Config.Cloudinit',
  'VM.Config.Disk',
  'VM.Config.HWType',
  'VM.Config.Memory',
  'VM.Config.Network',
  'VM.Config.Options',
  'VM.Console',
  'VM.Migrate',
  'VM.PowerMgmt',
  'VM.Snapshot',
  'VM.Snapshot.Rollback',
] as const;

const PRIVILEGES: Readonly<Record<ApiVersion, readonly string[]>> = {
  '8.4': [...COMMON, 'VM.Monitor'],
  '9.2': [
    ...COMMON,
    'VM.GuestAgent.Audit',
    'VM.GuestAgent.FileRead',
    'VM.GuestAgent.FileSystemMgmt',
    'VM.GuestAgent.FileWrite',
    'VM.GuestAgent.Unrestricted',
    'VM.Replicate',
  ],
};

const ROOT_ONLY = [
  'Realm.Allocate',
  'Permissions.Modify',
  'Sys.PowerMgmt',
  'Sys.Modify',
  'Sys.Incoming',
  'Sys.AccessNetwork',
];

function admin(version: ApiVersion, prefixes: readonly string[]): readonly string[] {
  return PRIVILEGES[version].filter((name) => prefixes.some((prefix) => name.startsWith(prefix)));
}

/** The roles of every installation; they cannot be changed. */
export function builtInRoles(version: ApiVersion): Readonly<Record<string, readonly string[]>> {
  const all = PRIVILEGES[version];
  const agent = version === '8.4' ? ['VM.Monitor'] : ['VM.GuestAgent.Audit'];
  const vmUser = [
    'VM.Audit',
    'VM.Backup',
    'VM.Config.CDROM',
    'VM.Config.Cloudinit',
    'VM.Console',
    'VM.PowerMgmt',
  ];
  return {
    Administrator: all,
    NoAccess: [],
    PVEAdmin: all.filter((name) => name !== 'Mapping.Modify' && !ROOT_ONLY.includes(name)),
    PVEAuditor: [
      'Datastore.Audit',
      'Mapping.Audit',
      'Pool.Audit',
      'SDN.Audit',
      'Sys.Audit',
      'VM.Audit',
      ...(version === '8.4' ? [] : agent),
    ],
    PVEDatastoreAdmin: admin(version, ['Datastore.']),
    PVEDatastoreUser: ['Datastore.AllocateSpace', 'Datastore.Audit'],
    PVEMappingAdmin: admin(version, ['Mapping.']),
    PVEMappingUser: ['Mapping.Audit', 'Mapping.Use'],
    PVEPoolAdmin: admin(version, ['Pool.']),
    PVEPoolUser: ['Pool.Audit'],
    PVESDNAdmin: admin(version, ['SDN.']),
    PVESDNUser: ['SDN.Audit', 'SDN.Use'],
    PVESysAdmin: ['Sys.Audit', 'Sys.Console', 'Sys.Syslog'],
    PVETemplateUser: ['VM.Audit', 'VM.Clone'],
    PVEUserAdmin: ['Group.Allocate', 'Realm.AllocateUser', 'User.Modify'],
    PVEVMAdmin: admin(version, ['VM.']),
    PVEVMUser:
      version === '8.4'
        ? vmUser
        : [
            ...vmUser,
            ...agent,
            'VM.GuestAgent.FileRead',
            'VM.GuestAgent.FileSystemMgmt',
            'VM.GuestAgent.FileWrite',
          ],
  };
}

/** VM options by the privilege on /vms/{vmid} that is needed to change them. */
export const OPTION_PRIVILEGES: Readonly<Record<string, readonly string[]>> = {
  'VM.Config.CPU': [
    'cores',
    'cpu',
    'cpulimit',
    'cpuunits',
    'numa',
    'smp',
    'sockets',
    'vcpus',
    'runningcpu',
  ],
  'VM.Config.Memory': ['memory', 'balloon', 'shares', 'allow-ksm'],
  'VM.Config.HWType': [
    'acpi',
    'hotplug',
    'kvm',
    'machine',
    'scsihw',
    'smbios1',
    'tablet',
    'vga',
    'watchdog',
    'audio0',
    'rng0',
    'runningmachine',
  ],
  'VM.Config.Options': [
    'agent',
    'autostart',
    'bios',
    'description',
    'keyboard',
    'localtime',
    'migrate_downtime',
    'migrate_speed',
    'name',
    'onboot',
    'ostype',
    'protection',
    'reboot',
    'startdate',
    'startup',
    'tdf',
    'template',
  ],
  'VM.PowerMgmt': ['freeze'],
  'VM.Config.Disk': ['boot', 'bootdisk', 'vmstatestorage'],
};

/** VM.Config.Cloudinit or VM.Config.Network is sufficient; the same holds for ipconfigN. */
export const CLOUD_INIT_OPTIONS: readonly string[] = [
  'cicustom',
  'cipassword',
  'citype',
  'ciuser',
  'ciupgrade',
  'nameserver',
  'searchdomain',
  'sshkeys',
];
