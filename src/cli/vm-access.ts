// SPDX-License-Identifier: Apache-2.0
// `vm ssh` and `vm console`.
import { addressesOf, type Machine, withoutPrefixLength } from '../model/machine.ts';
import { NotFound, NotReady } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { requireVm } from './vm-list.ts';

export async function sshToVm(
  host: CommandHost,
  open: OpenFleet,
  { text, words }: { readonly text: string; readonly words: readonly string[] },
): Promise<void> {
  const vm = await requireVm(open, text);
  const { user, privateKeyPath } = open.config.ssh;
  const address = await addressOf(open, vm);
  const args = [
    // A new VM has a new key; a changed one is refused.
    '-o',
    'StrictHostKeyChecking=accept-new',
    ...(privateKeyPath === undefined ? [] : ['-i', privateKeyPath]),
    `${user}@${address}`,
    ...words,
  ];
  const code = await host.context.adapters.runInteractive('ssh', args);
  if (code === undefined) {
    throw new NotFound('PROGRAM_NOT_FOUND', 'the program ssh is not installed', {
      hint: `Install an OpenSSH client, or log in to ${user}@${address} with another one.`,
    });
  }
  host.exitWith(code);
}

async function addressOf({ hypervisors }: OpenFleet, vm: Machine): Promise<string> {
  const { placement } = vm;
  const known = addressesOf(vm);
  const read =
    known.length > 0 || placement === undefined
      ? known
      : ((await hypervisors.get(placement.region)?.guestInterfaces(placement)) ?? [])
          .filter(({ name }) => /^e(n|th)/.test(name))
          .flatMap(({ addresses }) => addresses);
  const [first] = read.toSorted((a, b) => Number(a.includes(':')) - Number(b.includes(':')));
  const name = placement?.name ?? vm.id;
  if (first === undefined) {
    throw new NotReady('VM_NOT_READY', `${name} has no address yet; it is ${vm.phase}`, {
      hint: `Look at it with pvescaler vm console ${name}.`,
    });
  }
  return withoutPrefixLength(first);
}

/** The Proxmox API gives a console to a browser session only, so the person's own session is used. */
export async function printConsole(
  host: CommandHost,
  open: OpenFleet,
  { text, ...options }: OutputOptions & { readonly text: string },
): Promise<void> {
  const { id, placement } = await requireVm(open, text);
  if (placement === undefined) throw new NotFound('VM_NOT_FOUND', `${id} has no VM yet`);
  const { vmId, name, region } = placement;
  const endpoint = webInterfaceOf(open, region);
  const query = new URLSearchParams({
    console: 'kvm',
    novnc: '1',
    vmid: String(vmId),
    vmname: name,
    node: placement.host,
  });
  const url = `${endpoint}/?${query.toString()}`;
  await printObjects(host, options, {
    value: { name, vmId, region, url },
    names: [name],
    text: () => `${url}\n`,
  });
}

/** With transport ssh only the hosts are known; Proxmox serves its web interface on port 8006 of each. */
function webInterfaceOf({ config }: OpenFleet, region: string): string {
  const { endpoints = [], transport } = config.regions[region] ?? {};
  const hostname = transport?.kind === 'ssh' ? transport.hosts[0]?.hostname : undefined;
  const at = hostname?.includes(':') === true ? `[${hostname}]` : hostname;
  const endpoint = endpoints[0] ?? (at === undefined ? undefined : `https://${at}:8006`);
  if (endpoint !== undefined) return endpoint;
  throw new NotFound('VM_NOT_FOUND', `the config has no region ${region}`);
}
