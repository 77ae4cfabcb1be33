// SPDX-License-Identifier: Apache-2.0
// The guide's commands, run on the simulator: what they give suffices, and nothing in it is superfluous.
import { describe, expect, it } from 'vitest';
import { vmOrder } from '../proxmox/simulated-region.ts';
import { commandsUnder, GUIDE } from './guide.ts';
import { lifeOfAMachine, siteWithRole, type Trial } from './site-with-role.ts';

const VERSIONS = [
  { version: '8.4', heading: 'The role on 8.4' },
  { version: '9.2', heading: 'The role on 9.x' },
] as const;
const SOURCES = ['image', 'full clone'] as const;
const WELL = 'came and went';

type Words = readonly string[];

const RIGHTS = commandsUnder('User, rights and token');

function privilegesOf(role: Words): readonly string[] {
  return (role.at(-1) ?? '').split(/\s+/);
}

function without(role: Words, privilege: string): Words {
  const left = privilegesOf(role).filter((name) => name !== privilege);
  return [...role.slice(0, -1), left.join(' ')];
}

/** The rows of the guide's table: each privilege with what it is needed for. */
function table(version: string): ReadonlyMap<string, string> {
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

describe.each(VERSIONS)('the role of the guide on Proxmox VE $version', ({ version, heading }) => {
  const [role = []] = commandsUnder(heading);
  const explained = table(version);

  function life(commands: readonly Words[], source: Trial['source'], resourcePool?: string) {
    return lifeOfAMachine({ version, source, commands, resourcePool });
  }

  it('has the privileges that the table explains', () => {
    expect(privilegesOf(role).toSorted()).toEqual([...explained.keys()].sort());
  });

  it.each(['image', 'full clone', 'linked clone'] as const)(
    'suffices for machines from %s',
    async (source) => {
      expect(await life([role, ...RIGHTS], source)).toBe(WELL);
    },
  );

  it.each(privilegesOf(role))('needs %s, just where the table says so', async (privilege) => {
    for (const source of SOURCES) {
      const outcome = await life([without(role, privilege), ...RIGHTS], source);
      const needed = isNeeded(explained.get(privilege), source);
      expect(outcome === WELL, `${source}: ${outcome}`).toBe(!needed);
    }
  });

  it.each(RIGHTS.filter(([, what]) => what === 'acl').map((words) => words[3] ?? ''))(
    'is needed on %s',
    async (path) => {
      const fewer = RIGHTS.filter((words) => words[3] !== path);
      expect(fewer).toHaveLength(RIGHTS.length - 1);
      expect(await life([role, ...fewer], 'image')).not.toBe(WELL);
    },
  );

  it('suffices on one resource pool', async () => {
    const tighter = commandsUnder('Tighter: only the VMs of one resource pool');
    const others = RIGHTS.filter((words) => words[3] !== '/vms');
    const beforeToken = [role, ...others.slice(0, -1), ...tighter, ...others.slice(-1)];
    expect(await life(beforeToken, 'image', 'kubernetes')).toBe(WELL);
    const blind = beforeToken.filter((words) => words[3] !== '/pool/kubernetes');
    expect(await life(blind, 'image', 'kubernetes')).not.toBe(WELL);
  });

  it('needs what the guide adds for commands in the guest, and for devices', async () => {
    const more = (...names: readonly string[]) => [
      [...role.slice(0, -1), [...privilegesOf(role), ...names].join(' ')],
      ...RIGHTS,
    ];
    const exec = (privileges: readonly string[]) =>
      lifeOfAMachine(
        { version, source: 'image', commands: more(...privileges) },
        async ({ hypervisor }, vm) =>
          hypervisor.guestExec(vm, { command: ['/bin/true'], timeoutMs: 30_000 }),
      );
    if (version === '9.2') await expect(exec([])).rejects.toThrow('VM.GuestAgent.Unrestricted');
    expect(await exec(version === '9.2' ? ['VM.GuestAgent.Unrestricted'] : [])).toBe(WELL);
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
});
