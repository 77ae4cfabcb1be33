// SPDX-License-Identifier: Apache-2.0
// VMs created by hand, with the built CLI on the simulated Proxmox.
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { aLab, start } from '../support/lab.ts';
import { pvescaler } from '../support/pvescaler.ts';

const CONFIG = 'readiness: { timeout: 60s, sshInterval: 1s }\n';

interface CreatedVm {
  readonly name: string;
  readonly host: string;
  readonly vmId: number;
  readonly addresses: readonly string[];
  readonly state: string;
}

type Lab = Awaited<ReturnType<typeof aLab>>;

function create({ run }: Lab, ...options: string[]) {
  return run('vm', 'create', '--role', 'worker', ...options);
}

function parseVms(text: string): readonly CreatedVm[] {
  return JSON.parse(text) as readonly CreatedVm[];
}

async function vmIdsOf({ request }: Lab): Promise<readonly number[]> {
  const { data } = await request('GET', '/cluster/resources?type=vm');
  return (data as readonly { readonly vmid: number }[]).map(({ vmid }) => vmid).sort();
}

describe('vm', () => {
  it('plans, creates, lists, shows and deletes VMs', async () => {
    const lab = await aLab({ config: CONFIG });
    const planned = create(lab, '--count', '2', '--dry-run', '-o', 'json');
    expect(parseVms(planned.out)).toMatchObject([
      { name: 'k8s-worker-1', host: 'pve1', vmId: 1250 },
      { name: 'k8s-worker-2', host: 'pve2', vmId: 1251 },
    ]);
    expect(await vmIdsOf(lab)).toEqual([]);
    const created = create(lab, ...'--count 2 --memory 1024 --disk 8 -o json'.split(' '));
    expect(created.err).toContain('SSH is not checked: ssh.publicKeys of the config is empty');
    expect(created.err).toMatch(/k8s-worker-1: waiting for (the guest agent|an address)/);
    const vms = parseVms(created.out);
    expect(vms.map(({ name, state }) => [name, state])).toEqual([
      ['k8s-worker-1', 'ready'],
      ['k8s-worker-2', 'ready'],
    ]);
    expect(vms[0]?.addresses[0]).toMatch(/^10\.10\./);
    const { data } = await lab.request('GET', '/nodes/pve1/qemu/1250/config');
    expect(data).toMatchObject({
      name: 'k8s-worker-1',
      memory: '1024',
      scsi0: expect.stringContaining('size=8G'),
      description: expect.stringContaining(' role=worker '),
    });
    expect(lab.run('vm', 'list').out).toMatch(/k8s-worker-2 +worker +ready .* 10\.10\./);
    expect(lab.run('machines').out).toMatch(/k8s-worker-2 +role:worker +ready/);
    expect(lab.run('vm', 'show', 'k8s-worker-1').out).toMatch(/role +worker/);
    expect(lab.run('vm', 'console', '1250').out).toContain('vmid=1250');
    expect(lab.run('vm', 'delete', 'k8s-worker-1', '1251').out).toBe('2 machines are gone\n');
    expect(await vmIdsOf(lab)).toEqual([]);
  });

  it('gives ten VMs to two commands that create five each while a daemon runs', async () => {
    const lab = await aLab({ config: CONFIG });
    const daemon = start(['serve', '--config', lab.path]);
    const outputs = await Promise.all(
      [1, 2].map(async () => {
        const args = 'vm create --role worker --count 5 --size small -o json'.split(' ');
        const child = start([...args, '--config', lab.path]);
        let text = '';
        child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        const [code] = (await once(child, 'close')) as [number | null];
        expect(code).toBe(0);
        return text;
      }),
    );
    daemon.kill('SIGTERM');
    const vms = outputs.flatMap(parseVms);
    expect(vms.map(({ state }) => state)).toEqual(Array.from({ length: 10 }, () => 'ready'));
    expect(new Set(vms.map(({ name }) => name)).size).toBe(10);
    expect(new Set(vms.map(({ vmId }) => vmId)).size).toBe(10);
    expect(vms.filter(({ host }) => host === 'pve1')).toHaveLength(5);
    expect(await vmIdsOf(lab)).toHaveLength(10);
  });

  it('keeps a VM that is not ready in time, with an exit code of its own', async () => {
    const lab = await aLab({ config: 'readiness: { timeout: 2s }\n', behaviour: 'no-agent' });
    const { exitCode, err, out } = create(lab);
    expect(exitCode).toBe(16);
    expect(out).toMatch(/k8s-worker-1 +pve1 +1250 +- +not-ready/);
    expect(err).toContain('k8s-worker-1 was not ready in time: waited for the guest agent');
    expect(err).toContain('pvescaler vm delete k8s-worker-1');
    expect(await vmIdsOf(lab)).toEqual([1250]);
    expect(lab.run('vm', 'delete', 'k8s-worker-1')).toMatchObject({ exitCode: 0 });
    expect(await vmIdsOf(lab)).toEqual([]);
  });

  it('says what exists when it is interrupted, and cancels the rest', async () => {
    const lab = await aLab({ config: CONFIG });
    const child = start([
      ...'vm create --role worker --count 20 --memory 512 --host pve1'.split(' '),
      '--config',
      lab.path,
    ]);
    let err = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      const wasStarting = err.includes(': starting');
      err += chunk;
      // Most are not even created then. A second signal would end the process at once.
      if (!wasStarting && err.includes(': starting')) child.kill('SIGINT');
    });
    const [code] = (await once(child, 'close')) as [number | null];
    expect(code).toBe(130);
    const [message = ''] = /interrupted: .*/.exec(err) ?? [];
    expect(message).toMatch(/k8s-worker-\d is [a-z]+ \(VM 12\d\d on pve1\)/);
    const named = [...message.matchAll(/VM (12\d\d) on pve1/g)].map(([, id]) => Number(id));
    const cancelled = Number(/(\d+) VMs? did not exist yet and/.exec(message)?.[1]);
    expect(named.length + cancelled).toBe(20);
    for (const vmId of await vmIdsOf(lab)) expect(named).toContain(vmId);
    const [, names = ''] = /vm delete (.*) removes them/.exec(err) ?? [];
    expect(lab.run('vm', 'delete', ...names.split(' '))).toMatchObject({ exitCode: 0 });
    expect(await vmIdsOf(lab)).toEqual([]);
  });

  it('does not delete a VM that pvescaler did not create', async () => {
    const lab = await aLab({ config: CONFIG });
    await lab.request('POST', '/nodes/pve1/qemu?vmid=200&name=web&memory=512');
    for (const text of ['web', '200']) {
      const { exitCode, err } = lab.run('vm', 'delete', text);
      expect(exitCode).toBe(8);
      expect(err).toContain('VM 200 (web) on pve1 was not created by pvescaler');
    }
    expect(lab.run('vm', 'delete', 'nothing')).toMatchObject({ exitCode: 4 });
    expect(lab.run('vm', 'delete', '200', '--confirm-name', 'web')).toMatchObject({ exitCode: 8 });
    expect(await vmIdsOf(lab)).toEqual([200]);
  });

  it('deletes a VM that pvescaler did not create only with --force and its name', async () => {
    const lab = await aLab({ config: CONFIG });
    const post = (call: string) => lab.request('POST', call);
    await post('/nodes/pve1/qemu?vmid=200&name=web&memory=512');
    await post('/nodes/pve1/qemu?vmid=201&name=web&memory=512');
    await post('/nodes/pve2/qemu?vmid=202&name=db&memory=512&protection=1');
    await post('/nodes/pve1/qemu/200/status/start');
    const force = (...args: string[]) => lab.run('vm', 'delete', '--force', ...args);
    const untyped = force('200');
    expect(untyped.exitCode).toBe(8);
    expect(untyped.err).toContain('VM 200 (web) on pve1 is not deleted: its name was not typed');
    expect(force('200', '--confirm-name', '200').err).toContain("'200' is not its name");
    const ambiguous = force('web', '--confirm-name', 'web');
    expect(ambiguous.exitCode).toBe(2);
    expect(ambiguous.err).toContain("several VMs have the name or id 'web'");
    expect(force('200', '201', '--confirm-name', 'web')).toMatchObject({ exitCode: 2 });
    expect(force('202', '--confirm-name', 'db').err).toContain('VM 202 is protected');
    expect(await vmIdsOf(lab)).toEqual([200, 201, 202]);
    const deleted = force('200', '--confirm-name', 'web');
    expect(deleted).toMatchObject({ exitCode: 0, out: 'VM 200 (web) on pve1 is gone\n' });
    expect(await vmIdsOf(lab)).toEqual([201, 202]);
    expect(lab.run('state', 'journal').out).toContain('destroy VM 200, requested by cli: done');
  });

  it('takes the name that --force gets as a whole, and knows machines of pools by VM id', async () => {
    const lab = await aLab({ config: CONFIG, min: 1 });
    await lab.request('POST', '/nodes/pve1/qemu?vmid=200&name=k8s-worker&memory=512');
    expect(create(lab, '--memory', '512', '--vmid', '1290')).toMatchObject({ exitCode: 0 });
    const force = ['vm', 'delete', 'k8s-worker', '--force', '--confirm-name', 'k8s-worker'];
    expect(lab.run(...force, '-o', 'json').out).toContain('"vmId": 200');
    expect(lab.run('pool', 'scale', 'workers', '--to', '1')).toMatchObject({ exitCode: 0 });
    const [pooled = 0, ...others] = await vmIdsOf(lab);
    expect(others).toEqual([1290]);
    const { err } = lab.run('vm', 'delete', String(pooled));
    expect(err).toContain(`${pooled} is a machine of pool workers`);
  });

  it('has a help text for each command', () => {
    for (const command of ['create', 'list', 'show', 'delete', 'ssh', 'console']) {
      const { out, exitCode } = pvescaler(['vm', command, '--help']);
      expect([command, exitCode]).toEqual([command, 0]);
      expect(out).toContain(`pvescaler vm ${command}`);
    }
  });
});
