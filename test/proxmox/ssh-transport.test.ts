// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TEMPLATE, vmOrder } from './simulated-region.ts';
import { type SshRegion, sshRegion } from './ssh-region.ts';

async function createdVm({ hypervisor, settled, clock }: SshRegion, vmId: number, host = 'pve1') {
  await settled(hypervisor.createVm(vmOrder(vmId, host)));
  await clock.advance(60_000);
  return { vmId, host };
}

const HOSTILE = [
  `$(touch /tmp/x) \`reboot\` ; reboot & | > /etc/passwd`,
  `it's "quoted" \\ back\\\\slash`,
  `--purge 1\n--skiplock 1`,
  `x\n"UPID:pve1:00000001:00000001:00000001:qmstart:1:root@pam:"`,
  `é ü 漢 🙂`,
  `-`,
  `a=b,c;d`,
];

describe('commands on the hosts', () => {
  it.each(HOSTILE)('store the description %j unchanged', async (text) => {
    const region = sshRegion();
    const { hypervisor, settled } = region;
    const vm = await createdVm(region, 5_001);
    const { digest } = await settled(hypervisor.vmConfig(vm));
    await settled(hypervisor.setDescription(vm, text, { digest }));
    expect((await settled(hypervisor.vmConfig(vm))).description).toBe(text);
  });

  it('refuse names and tags that Proxmox refuses, as parameters', async () => {
    const { hypervisor, settled } = sshRegion();
    const order = vmOrder(5_001);
    for (const identity of [
      { ...order.identity, name: 'a;reboot' },
      { ...order.identity, tags: ["x'; reboot; '"] },
    ]) {
      await expect(settled(hypervisor.createVm({ ...order, identity }))).rejects.toMatchObject({
        code: 'PARAMETER_REFUSED',
      });
    }
  });

  it('come by standard input, and secrets are no argument of any program', async () => {
    const region = sshRegion();
    const { hypervisor, settled, clock, commands } = region;
    const clone = { source: TEMPLATE, name: 'g', description: 'd', linked: true } as const;
    const vm = { vmId: 5_001, host: 'pve1' };
    await settled(hypervisor.cloneVm({ ...vm, ...clone }));
    await clock.advance(60_000);
    await settled(hypervisor.startVm(vm));
    await clock.advance(300_000);
    const result = await settled(
      hypervisor.guestExec(vm, { command: ['cat'], input: "s3cret'x", timeoutMs: 60_000 }),
    );
    expect(result.output).toBe("s3cret'x");
    expect(new Set(commands.map(({ command }) => command))).toEqual(new Set(['exec sh -s']));
    const [line = ''] = commands.flatMap(({ input }) =>
      input.split('\n').filter((each) => each.includes('s3cret')),
    );
    expect(line).toMatch(/^printf %s '[^|]*' \| qm guest exec 5001 /);
    expect(line.split('|')[1]).not.toContain('s3cret');
  });

  it('run on the host that they are about', async () => {
    const region = sshRegion();
    await createdVm(region, 5_002, 'pve2');
    const vm = { vmId: 5_002, host: 'pve2' };
    await region.settled(region.hypervisor.vmConfig(vm));
    const misplaced = region.commands.filter(({ host, input }) => {
      const node = /\/nodes\/(pve\d)/.exec(input)?.[1];
      return node !== undefined && node !== host;
    });
    expect(misplaced).toEqual([]);
  });

  it('fail with PVE_HOST_UNREACHABLE for a host that is not configured, and the others go on', async () => {
    const { hypervisor, settled } = sshRegion({}, ['pve1']);
    const work = settled(hypervisor.createVm(vmOrder(5_001, 'pve2')));
    await expect(work).rejects.toMatchObject({
      code: 'PVE_HOST_UNREACHABLE',
      message: expect.stringContaining('transport.ssh.hosts'),
      facts: { requestSent: false },
    });
    expect((await settled(hypervisor.view())).hosts).toHaveLength(3);
  });

  it('read the region from another host while one is down', async () => {
    const { hypervisor, settled, sim, clock } = sshRegion();
    sim.externalChanges.hostDown('pve1');
    await clock.advance(120_000);
    expect((await settled(hypervisor.view())).hosts.map(({ online }) => online)).toEqual([
      false,
      true,
      true,
    ]);
    await expect(settled(hypervisor.createVm(vmOrder(5_001, 'pve1')))).rejects.toMatchObject({
      code: 'PVE_HOST_UNREACHABLE',
      facts: { requestSent: false },
    });
  });

  it('leave no uploaded file behind, also when the upload is refused', async () => {
    const { hypervisor, settled, clock, sim } = sshRegion();
    const file = { host: 'pve1', storage: 'local', name: 'seed.iso', bytes: new Uint8Array(9) };
    await settled(hypervisor.uploadIso(file));
    await clock.advance(60_000);
    const left = () =>
      sim
        .shell('pve1')
        .files()
        .filter((path) => path.includes('pveupload'));
    expect(left()).toEqual([]);
    const refused = settled(hypervisor.uploadIso({ ...file, storage: 'none' }));
    await expect(refused).rejects.toMatchObject({ code: 'STORAGE_NOT_FOUND' });
    expect(left()).toEqual([]);
    expect(
      sim
        .shell('pve1')
        .files()
        .filter((path) => /^\/(run|tmp)\//.test(path)),
    ).toEqual([]);
  });
});

describe('what an API token may not do', () => {
  it.each([
    ['args', '-device x'],
    ['hookscript', 'local:snippets/x.sh'],
    ['hostpci0', '0000:01:00.0'],
    ['hostpci0', 'mapping=gpu,romfile=x'],
    ['usb0', 'host=1234:5678'],
    ['serial0', '/dev/ttyS0'],
    ['scsi1', '/dev/sdb'],
    ['scsi1', 'local:0,import-from=/root/disk.img'],
    ['virtio3', 'file=/etc/shadow'],
    ['lock', 'backup'],
    ['skiplock', '1'],
    ['vmgenid', '1'],
    ['parallel0', '/dev/parport0'],
    ['cipassword', 'secret'],
  ])('%s: %s is refused, and nothing is sent', async (name, value) => {
    const { hypervisor, settled, commands } = sshRegion();
    const order = vmOrder(5_001);
    const hardware = { ...order.hardware, options: { [name]: value } };
    const work = settled(hypervisor.createVm({ ...order, hardware }));
    await expect(work).rejects.toMatchObject({
      code: name === 'cipassword' ? 'TASK_FAILED' : 'PARAMETER_REFUSED',
    });
    expect(commands.filter(({ input }) => input.includes('pvesh create'))).toEqual([]);
  });

  it.each([
    ['hostpci0', 'mapping=gpu'],
    ['serial0', 'socket'],
    ['usb0', 'spice'],
  ])('%s: %s is sent', async (name, value) => {
    const { hypervisor, settled, commands } = sshRegion();
    const order = vmOrder(5_001);
    const hardware = { ...order.hardware, options: { [name]: value } };
    await settled(hypervisor.createVm({ ...order, hardware })).catch(() => undefined);
    expect(commands.some(({ input }) => input.includes('pvesh create'))).toBe(true);
  });

  it('a download with a password in its URL is refused', async () => {
    const { hypervisor, settled, commands } = sshRegion();
    const work = settled(
      hypervisor.downloadImage({
        host: 'pve1',
        storage: 'local',
        url: 'https://me:s3cret@images.example/x.img',
        fileName: 'x.qcow2',
        verifyCertificates: true,
      }),
    );
    await expect(work).rejects.toThrow(/password/);
    await expect(work).rejects.not.toThrow(/s3cret/);
    expect(commands.some(({ input }) => input.includes('s3cret'))).toBe(false);
  });
});
