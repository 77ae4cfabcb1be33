// SPDX-License-Identifier: Apache-2.0
// Runs the guide's commands on the simulator: the granted privileges suffice, and each of them is needed.
import { describe, expect, it } from 'vitest';
import { vmOrder } from '../proxmox/simulated-region.ts';
import { GUIDE, readCommands } from './guide.ts';
import { runMachineLifecycle, siteWithRole, type Trial } from './site-with-role.ts';

const VERSIONS = [
  { version: '8.4', heading: 'The role on 8.4' },
  { version: '9.2', heading: 'The role on 9.x' },
] as const;
const SOURCES = ['image', 'full clone'] as const;
const COMPLETED = 'created and deleted';

type Words = readonly string[];

const GRANTS = readCommands('User, rights and token');

function privilegesOf(role: Words): readonly string[] {
  return (role.at(-1) ?? '').split(/\s+/);
}

function withoutPrivilege(role: Words, privilege: string): Words {
  const remaining = privilegesOf(role).filter((name) => name !== privilege);
  return [...role.slice(0, -1), remaining.join(' ')];
}

/** Reads the guide's table: each privilege with when it is needed. */
function readPrivilegeTable(version: string): ReadonlyMap<string, string> {
  const rows = GUIDE.matchAll(/^\| (`[A-Z][^|]*) \| [^|]+ \| (always|images|templates) \|/gm);
  return new Map(
    [...rows].flatMap(([, names = '', needed = '']) =>
      [...names.matchAll(/`([^`]+)`(?: \((\S+)\))?/g)]
        .filter(([, , only]) => only === undefined || version.startsWith(only.replace('.x', '')))
        .map(([, name = '']) => [name, needed] as const),
    ),
  );
}

function isNeeded(needed: string | undefined, source: (typeof SOURCES)[number]): boolean {
  return needed === 'always' || (needed === 'images') === (source === 'image');
}

describe.each(VERSIONS)(
  'the Proxmox role of the guide on Proxmox VE $version',
  ({ version, heading }) => {
    const [role = []] = readCommands(heading);
    const explained = readPrivilegeTable(version);

    function runLifecycle(
      commands: readonly Words[],
      source: Trial['source'],
      resourcePool?: string,
    ) {
      return runMachineLifecycle({ version, source, commands, resourcePool });
    }

    it('has exactly the privileges in the table', () => {
      expect(privilegesOf(role).toSorted()).toEqual([...explained.keys()].sort());
    });

    it.each(['image', 'full clone', 'linked clone'] as const)(
      'suffices for machines from %s',
      async (source) => {
        expect(await runLifecycle([role, ...GRANTS], source)).toBe(COMPLETED);
      },
    );

    it.each(privilegesOf(role))('needs %s exactly where the table says so', async (privilege) => {
      for (const source of SOURCES) {
        const outcome = await runLifecycle([withoutPrivilege(role, privilege), ...GRANTS], source);
        const needed = isNeeded(explained.get(privilege), source);
        expect(outcome === COMPLETED, `${source}: ${outcome}`).toBe(!needed);
      }
    });

    it.each(GRANTS.filter(([, what]) => what === 'acl').map((words) => words[3] ?? ''))(
      'is needed on %s',
      async (path) => {
        const fewer = GRANTS.filter((words) => words[3] !== path);
        expect(fewer).toHaveLength(GRANTS.length - 1);
        expect(await runLifecycle([role, ...fewer], 'image')).not.toBe(COMPLETED);
      },
    );

    it('suffices for one resource pool', async () => {
      const tighter = readCommands('Tighter: only the VMs of one resource pool');
      const others = GRANTS.filter((words) => words[3] !== '/vms');
      const beforeToken = [role, ...others.slice(0, -1), ...tighter, ...others.slice(-1)];
      expect(await runLifecycle(beforeToken, 'image', 'kubernetes')).toBe(COMPLETED);
      const withoutPoolGrant = beforeToken.filter((words) => words[3] !== '/pool/kubernetes');
      expect(await runLifecycle(withoutPoolGrant, 'image', 'kubernetes')).not.toBe(COMPLETED);
    });

    it('needs the additional privileges for guest commands and for devices', async () => {
      const more = (...names: readonly string[]) => [
        [...role.slice(0, -1), [...privilegesOf(role), ...names].join(' ')],
        ...GRANTS,
      ];
      const exec = (privileges: readonly string[]) =>
        runMachineLifecycle(
          { version, source: 'image', commands: more(...privileges) },
          async ({ hypervisor }, vm) =>
            hypervisor.guestExec(vm, { command: ['/bin/true'], timeoutMs: 30_000 }),
        );
      if (version === '9.2') await expect(exec([])).rejects.toThrow('VM.GuestAgent.Unrestricted');
      expect(await exec(version === '9.2' ? ['VM.GuestAgent.Unrestricted'] : [])).toBe(COMPLETED);
      expect(await creationWithDevice(more())).toContain('/mapping/pci/gpu, Mapping.Use');
      const onMapping =
        'pveum acl modify /mapping/pci/gpu --users pvescaler@pve --roles MachineScaler';
      expect(await creationWithDevice([...more('Mapping.Use'), onMapping.split(' ')])).toBe('done');
    });

    async function creationWithDevice(commands: readonly Words[]): Promise<string> {
      const site = await siteWithRole({ version, source: 'image', commands });
      const order = vmOrder(1_250);
      const options = { machine: 'q35', hostpci0: 'mapping=gpu,pcie=1' };
      const withDevice = { ...order, hardware: { ...order.hardware, options } };
      return site.settled(
        site.hypervisor.createVm(withDevice).then(
          () => 'done',
          (error: Error) => error.message,
        ),
      );
    }
  },
);
