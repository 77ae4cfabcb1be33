// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  type ApiVersion,
  type EndpointFact,
  endpointsOf,
} from '../../../proxmox/wire-facts/index.ts';
import { normaliseParams, type Params, verifyParams } from './verify.ts';

function endpoint(name: string): EndpointFact {
  const found = endpointsOf('9.2').find((row) => `${row.method} ${row.path}` === name);
  if (found === undefined) throw new Error(name);
  return found;
}

const CREATE = endpoint('POST /nodes/{node}/qemu');

function errorsOf(params: Params): Readonly<Record<string, string>> {
  return verifyParams(CREATE, { node: 'pve1', vmid: '100', ...params });
}

const MISSING = 'property is missing and it is not optional';
const UNKNOWN =
  'property is not defined in schema and the schema does not allow additional properties';

describe('parameter verification of POST qemu', () => {
  it('reports all errors of a call at once', () => {
    expect(verifyParams(CREATE, { node: 'pve1', cores: '0', onboot: 'yes', foo: '1' })).toEqual({
      vmid: MISSING,
      cores: 'value must have a minimum value of 1',
      onboot: "type check ('boolean') failed - got 'yes'",
      foo: UNKNOWN,
    });
  });

  it.each([
    [{ vmid: 'x' }, 'vmid', "type check ('integer') failed - got 'x'"],
    [{ vmid: '99' }, 'vmid', 'invalid format - value does not look like a valid VM ID\n'],
    [{ vmid: '1000000000' }, 'vmid', 'invalid format - value does not look like a valid VM ID\n'],
    [{ node: 'a_b' }, 'node', 'invalid format - value does not look like a valid node name\n'],
    [{ name: 'a_b' }, 'name', 'invalid format - value does not look like a valid DNS name\n'],
    [{ cpulimit: '129' }, 'cpulimit', 'value must have a maximum value of 128'],
    [{ cpulimit: 'a' }, 'cpulimit', "type check ('number') failed - got 'a'"],
    [{ bios: 'x' }, 'bios', "value 'x' does not have a value in the enumeration 'seabios, ovmf'"],
    [{ description: 'x'.repeat(8193) }, 'description', 'value may only be 8192 characters long'],
    [{ startdate: 'tomorrow' }, 'startdate', 'value does not match the regex pattern'],
    [
      { sshkeys: 'ssh-ed25519 AAAA' },
      'sshkeys',
      'invalid format - invalid urlencoded string: ssh-ed25519 AAAA\n',
    ],
    [{ tags: 'a:b' }, 'tags', 'invalid format - invalid characters in tag\n'],
    [{ startup: 'first' }, 'startup', 'invalid format - unable to parse startup options\n'],
    [{ pool: 'a b' }, 'pool', "invalid format - pool name 'a b' contains invalid characters\n"],
    [
      { storage: 'x' },
      'storage',
      "invalid format - storage ID 'x' cannot be shorter than 2 characters\n",
    ],
    [
      { storage: '1x' },
      'storage',
      "invalid format - storage ID '1x' contains illegal characters\n",
    ],
    [
      { pool: 'a/b/c/d' },
      'pool',
      "invalid format - pool name 'a/b/c/d' nested too deeply (max levels = 3)\n",
    ],
    [{ hotplug: 'disk,fan' }, 'hotplug', "invalid format - invalid hotplug feature 'fan'\n"],
    [
      { unused0: 'local:a,volume=local:b' },
      'unused0',
      "invalid format - key 'file' is already defined (via alias)\n",
    ],
    [
      { scsi0: 'local:1,serial=a\nb' },
      'scsi0',
      'invalid format - missing key in comma-separated list property\n',
    ],
    [
      { scsi0: '32' },
      'scsi0',
      "invalid format - format error\nscsi0.file: invalid format - unable to parse volume ID '32'\n\n",
    ],
    [
      { ipconfig0: 'gw6=fe80::1%eth0,ip6=auto' },
      'ipconfig0',
      'invalid format - format error\nipconfig0.gw6: invalid format - value does not look like a valid IPv6 address\n\n',
    ],
    [{ net32: 'virtio' }, 'net32', UNKNOWN],
    [{ scsi31: 'local:1' }, 'scsi31', UNKNOWN],
    [{ net00: 'virtio' }, 'net00', UNKNOWN],
    [{ force: '1' }, 'archive', "missing property required by 'force'"],
    [
      { memory: '8' },
      'memory',
      'invalid format - format error\nmemory.current: value must have a minimum value of 16\n',
    ],
    [
      { memory: 'a' },
      'memory',
      "invalid format - format error\nmemory.current: type check ('integer') failed - got 'a'\n",
    ],
    [{ net0: 'virtio,mac=x' }, 'net0', `invalid format - format error\nnet0.mac: ${UNKNOWN}\n`],
    [{ net0: 'bridge=vmbr0' }, 'net0', `invalid format - format error\nnet0.model: ${MISSING}\n`],
    [
      { net0: 'virtio=zz' },
      'net0',
      'invalid format - format error\nnet0.macaddr: invalid format - value does not look like a valid unicast MAC address\n\n',
    ],
    [
      { net0: 'virtio,bridge=' },
      'net0',
      'invalid format - missing key in comma-separated list property\n',
    ],
    [
      { net0: 'virtio,tag=4095' },
      'net0',
      'invalid format - format error\nnet0.tag: value must have a maximum value of 4094\n',
    ],
    [
      { agent: 'maybe' },
      'agent',
      "invalid format - format error\nagent.enabled: type check ('boolean') failed - got 'maybe'\n",
    ],
    [
      { ipconfig0: 'ip=10.0.0.1' },
      'ipconfig0',
      'invalid format - format error\nipconfig0.ip: invalid format - value does not look like a valid ipv4 network configuration\n\n',
    ],
    [
      { ipconfig0: 'gw=10.0.0.1' },
      'ipconfig0',
      "invalid format - format error\nipconfig0.ip: missing property required by 'ipconfig0.gw'\n",
    ],
    [
      { scsi0: 'local:1,cache=x' },
      'scsi0',
      "invalid format - format error\nscsi0.cache: value 'x' does not have a value in the enumeration 'none, writethrough, writeback, unsafe, directsync'\n",
    ],
    [
      { scsi0: 'nothing' },
      'scsi0',
      "invalid format - format error\nscsi0.file: invalid format - unable to parse volume ID 'nothing'\n\n",
    ],
    [
      { nameserver: '300.1.1.1 b@d' },
      'nameserver',
      'invalid format - value does not look like a valid address: b@d\n',
    ],
    [{ vmgenid: 'x' }, 'vmgenid', 'value does not match the regex pattern'],
    [
      { smbios1: 'uuid=x' },
      'smbios1',
      'invalid format - format error\nsmbios1.uuid: value does not match the regex pattern\n',
    ],
    [
      { boot: 'order=floppy0' },
      'boot',
      "invalid format - format error\nboot.order: invalid format - invalid boot device 'floppy0'\n\n",
    ],
    [{ cores: ['1', '2'] }, 'cores', "type check ('integer') failed - got ARRAY"],
  ])('refuses %j', (params, name, text) => {
    expect(errorsOf(params)[name]).toBe(text);
  });

  it.each([
    {
      name: 'a.b-c',
      cores: '4',
      memory: '2048',
      balloon: '0',
      onboot: '1',
      cpu: 'host,flags=+aes',
    },
    { memory: 'current=2048', cores: 4, onboot: true, sockets: 1 },
    { agent: '1', vga: 'serial0', serial0: 'socket', scsihw: 'virtio-scsi-single', ostype: 'l26' },
    { agent: 'enabled=yes,fstrim_cloned_disks=on' },
    {
      net0: 'virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1,tag=20,mtu=1500,queues=4',
      net31: 'e1000',
    },
    { net0: 'model=virtio,macaddr=02:00:00:00:00:01,bridge=vmbr0' },
    {
      scsi0: 'local-lvm:32,discard=on,iothread=1,ssd=1',
      ide2: 'local:iso/x.iso,media=cdrom',
      ide0: 'local:cloudinit',
    },
    {
      scsi0: 'local-lvm:0,import-from=local:import/x.qcow2',
      virtio15: 'local-lvm:0.5',
      ide3: 'none,media=cdrom',
    },
    {
      ipconfig0: 'ip=10.0.0.5/24,gw=10.0.0.1',
      ipconfig1: 'ip=dhcp,ip6=auto',
      nameserver: '1.1.1.1 dns.example',
    },
    { sshkeys: 'ssh-ed25519%20AAAA%20me', ciuser: 'ubuntu', cipassword: 'x', searchdomain: 'lab' },
    {
      tags: 'a b;c,d',
      description: 'Grüße\nzwei',
      boot: 'order=scsi0;net0',
      startup: 'order=1,up=5',
    },
    { smbios1: 'uuid=7b4f2f1e-0000-4000-8000-000000000000,base64=1,family=YWJj', protection: '0' },
    { pool: 'a/b/c', storage: 'local', start: '0', 'ha-managed': '0' },
  ])('accepts %j', (params) => {
    expect(errorsOf(params)).toEqual({});
  });
});

describe('normaliseParams', () => {
  it('converts a single value to an array and a repeated key to a comma-separated list', () => {
    const exec = endpoint('POST /nodes/{node}/qemu/{vmid}/agent/exec');
    expect(normaliseParams(exec, { command: '/bin/true' })['command']).toEqual(['/bin/true']);
    expect(normaliseParams(CREATE, { tags: ['a', 'b'] })['tags']).toBe('a,b');
  });

  it('verifyParams checks the items of an array', () => {
    const exec = endpoint('POST /nodes/{node}/qemu/{vmid}/agent/exec');
    expect(verifyParams(exec, { node: 'pve1', vmid: '100', command: [['a']] })).toEqual({
      'command[0]': "type check ('string') failed - got ARRAY",
    });
  });
});

describe('parameter verification of other endpoints', () => {
  it.each([
    [
      'PUT /nodes/{node}/qemu/{vmid}/resize',
      { disk: 'scsi0', size: '10GB' },
      { size: 'value does not match the regex pattern' },
    ],
    ['PUT /nodes/{node}/qemu/{vmid}/resize', { disk: 'scsi0', size: '+5G' }, {}],
    ['PUT /nodes/{node}/qemu/{vmid}/resize', {}, { disk: MISSING, size: MISSING }],
    [
      'DELETE /nodes/{node}/qemu/{vmid}',
      { purge: 'true' },
      { purge: "type check ('boolean') failed - got 'true'" },
    ],
    ['DELETE /nodes/{node}/qemu/{vmid}', { purge: '1', 'destroy-unreferenced-disks': '0' }, {}],
    [
      'POST /nodes/{node}/qemu/{vmid}/clone',
      { newid: '5' },
      { newid: 'invalid format - value does not look like a valid VM ID\n' },
    ],
    [
      'POST /nodes/{node}/qemu/{vmid}/clone',
      { newid: '101', full: '1', name: 'x', target: 'pve2' },
      {},
    ],
    [
      'POST /nodes/{node}/qemu/{vmid}/status/shutdown',
      { timeout: '-1' },
      { timeout: 'value must have a minimum value of 0' },
    ],
    ['POST /nodes/{node}/qemu/{vmid}/status/shutdown', { timeout: '30', forceStop: '1' }, {}],
    ['POST /nodes/{node}/qemu/{vmid}/status/stop', { 'overrule-shutdown': '1' }, {}],
    ['GET /nodes/{node}/qemu/{vmid}/agent/exec-status', {}, { pid: MISSING }],
  ])('%s with %j reports the expected errors', (name, params, errors) => {
    expect(verifyParams(endpoint(name), { node: 'pve1', vmid: '100', ...params })).toEqual(errors);
  });
});

describe('parameter verification that differs between 8.4 and 9.2', () => {
  it.each([
    [
      { storage: 'x' },
      { storage: "invalid format - storage ID 'x' contains illegal characters\n" },
      { storage: "invalid format - storage ID 'x' cannot be shorter than 2 characters\n" },
    ],
    [
      { agent: 'yes' },
      {
        agent:
          "invalid format - format error\nagent.enabled: type check ('boolean') failed - got 'yes'\n",
      },
      {},
    ],
    [
      { unused0: 'local:a,volume=local:b' },
      {},
      { unused0: "invalid format - key 'file' is already defined (via alias)\n" },
    ],
    [
      { force: '1' },
      { archive: "missing property - 'force' requires this property" },
      { archive: "missing property required by 'force'" },
    ],
  ])('%j', (params, in84, in92) => {
    const errors = (version: ApiVersion) => {
      const create = endpointsOf(version).find(
        ({ method, path }) => method === 'POST' && path === CREATE.path,
      );
      return verifyParams(create ?? CREATE, { node: 'pve1', vmid: '100', ...params }, version);
    };
    expect(errors('8.4')).toEqual(in84);
    expect(errors('9.2')).toEqual(in92);
  });
});
