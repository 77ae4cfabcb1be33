// SPDX-License-Identifier: Apache-2.0
// Templates, with the built CLI on the simulated Proxmox: its guests run the real build script.
import { describe, expect, it } from 'vitest';
import { aLab } from '../support/lab.ts';

const TEMPLATE = `
templates:
  ubuntu:
    name: ubuntu-2204-cloud-template
    id: 9000
    image: noble
    packages: [htop]
    files: [{ path: /etc/motd, content: hello }]
    commands: [touch /opt/prepared]
    kubeadm: { version: 1.34.2 }
vms: { from: { template: ubuntu, clone: linked } }
readiness: { timeout: 60s }
`;

type Lab = Awaited<ReturnType<typeof aLab>>;

function templatesOf({ run }: Lab) {
  return JSON.parse(run('template', 'list', '-o', 'json').out) as readonly Record<
    string,
    unknown
  >[];
}

describe('template', () => {
  it('is built on each host, cloned, rebuilt and deleted', async () => {
    const lab = await aLab({ config: TEMPLATE });
    const built = lab.run('template', 'build');
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.out.split('\n').filter(Boolean).toSorted()).toEqual([
      'template ubuntu version 1 is VM 9000 on pve1',
      'template ubuntu version 1 is VM 9001 on pve2',
    ]);
    expect(built.err).toContain('ubuntu-2204-cloud-template on pve1: 30 %, importing the image');
    expect(built.err).toContain('ubuntu-2204-cloud-template on pve2: 100 %, ready');
    const { data } = await lab.request('GET', '/nodes/pve1/qemu/9000/config');
    expect(data).toMatchObject({ template: 1, name: 'ubuntu-2204-cloud-template', cores: 1 });
    const doctor = lab.run('doctor', '--all', '-o', 'json');
    expect(doctor.out).toContain('VM 9001 on pve2');
    expect(lab.run('template', 'build', '--host', 'pve7')).toMatchObject({
      exitCode: 4,
      err: expect.stringContaining('Use one of pve1, pve2.') as unknown,
    });
    expect(lab.run('template', 'sync').out).toBe('template ubuntu is up to date\n');
    const synced = JSON.parse(lab.run('template', 'sync', '-o', 'json').out) as readonly unknown[];
    expect(synced).toEqual(templatesOf(lab));
    const vm = lab.run('vm', 'create', '--role', 'worker', '--host', 'pve1', '--size', 'small');
    expect(vm.err).not.toMatch(/fail/i);
    expect(vm.out).toMatch(/k8s-worker-1 +pve1 +1250 +10\.10\.\S+ +ready/);
    const rebuilt = lab.run('template', 'build', '--host', 'pve1', '-o', 'json');
    expect(JSON.parse(rebuilt.out)).toEqual(templatesOf(lab));
    expect(rebuilt.err).toContain('1 machine is gone\n');
    expect(lab.run('template', 'show').out).toMatch(/kubeadm +1\.34\.2/);
    const versions = templatesOf(lab).map(({ host, version }) => [host, version]);
    expect(versions).toContainEqual(['pve1', 2]);
    expect(versions).toContainEqual(['pve2', 1]);
    expect(lab.run('vm', 'delete', 'k8s-worker-1')).toMatchObject({ exitCode: 0 });
    expect(lab.run('template', 'list').out).toMatch(/^TEMPLATE +VERSION +REGION +HOST +VM /);
    const deleted = lab.run('template', 'delete', 'ubuntu', '-o', 'name');
    expect(deleted.out.split('\n').filter(Boolean)).toHaveLength(2);
    expect(templatesOf(lab)).toEqual([]);
  });

  it('is built by vm create --yes where it is missing', async () => {
    const lab = await aLab({ config: TEMPLATE });
    const create = ['vm', 'create', '--role', 'master', '--host', 'pve2'];
    const asked = lab.run(...create);
    expect(asked).toMatchObject({ exitCode: 4 });
    expect(asked.err).toContain('there is no template ubuntu on pve2\n');
    expect(asked.err).toContain('Run pvescaler template build ubuntu first, or add --yes.');
    const created = lab.run(...create, '--yes');
    expect(created.out).toContain('template ubuntu version 1 is VM 9000 on pve2');
    expect(created.out).toMatch(/k8s-master-1 +pve2 +1250 .* ready/);
    expect(templatesOf(lab)).toHaveLength(1);
    expect(
      lab.run('machine', 'delete', 'ubuntu-2204-cloud-template', '--timeout', '8s'),
    ).toMatchObject({
      exitCode: 2,
      err: expect.stringContaining('pvescaler template delete') as unknown,
    });
    const second = lab.run(...'vm create --role master --host pve1 --yes -o json'.split(' '));
    expect(JSON.parse(second.out)).toMatchObject([{ state: 'ready' }]);
  });

  it('leaves nothing when a command of the build fails, and says so', async () => {
    const config = TEMPLATE.replace('touch /opt/prepared', '"false"');
    const lab = await aLab({ config });
    const { exitCode, err } = lab.run('template', 'build', '--host', 'pve2');
    expect(exitCode).toBe(12);
    expect(err).toContain('the template could not be built: running commands failed');
    const { data } = await lab.request('GET', '/cluster/resources?type=vm');
    expect(data).toEqual([]);
  });
});
