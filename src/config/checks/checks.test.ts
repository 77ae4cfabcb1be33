// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { IMAGE_LINES, loadText, REGION_LINES, VALID } from '../testing/load-text.ts';

/** `path: message` of each problem; warnings are marked. */
function found(text: string): readonly string[] {
  return loadText(text).problems.map(
    ({ path, message, severity }) =>
      `${severity === 'warning' ? '(warning) ' : ''}${path}: ${message}`,
  );
}

function region(lines: string): string {
  return `proxmox:\n  lab: { ${lines} }\n`;
}

const ENDPOINT = 'endpoints: [https://pve1:8006]';
const TOKEN = 'token: { id: "a@pve!b", secretFile: x }';

describe('checks of regions', () => {
  it.each([
    [TOKEN, ["proxmox.lab: needs 'endpoints' with at least one URL, https://host:8006"]],
    [ENDPOINT, ["proxmox.lab: has no credentials; set 'token', or 'user' and 'passwordFile'"]],
    [
      `${ENDPOINT}, user: a@pve`,
      ['proxmox.lab: needs a secret; set one of passwordFile, passwordEnv, passwordRef'],
    ],
    [`${ENDPOINT}, user: a@pve, passwordEnv: X`, []],
    [
      `${ENDPOINT}, ${TOKEN}, user: a@pve, passwordEnv: X`,
      ["proxmox.lab.user: cannot be combined with 'token'; keep only one of them"],
    ],
    [
      `${ENDPOINT}, ${TOKEN}, passwordFile: x`,
      ["proxmox.lab.passwordFile: has no effect together with 'token'; keep only one of them"],
    ],
    [
      `${ENDPOINT}, token: { secretFile: x, secretEnv: Y }`,
      [
        "proxmox.lab.token: needs 'id' in the form user@realm!name",
        'proxmox.lab.token.secretEnv: cannot be combined with secretFile; keep only one of them',
      ],
    ],
    [
      `${ENDPOINT}, token: { id: "a@pve!b", idRef: { name: s }, secretFile: x }`,
      ["proxmox.lab.token.idRef: cannot be combined with 'id'; keep only one of them"],
    ],
    [`${ENDPOINT}, token: { idRef: { name: s }, secretRef: { name: s } }`, []],
    [`${ENDPOINT}, user: a@pve, passwordRef: { name: s }`, []],
    [
      `endpoints: [https://pve1:8006, https://pve1:8006/api2/json], ${TOKEN}`,
      ['proxmox.lab.endpoints[1]: appears twice in the list'],
    ],
    [
      `endpoints: [http://pve1:8006], ${TOKEN}`,
      ['proxmox.lab.endpoints[0]: must start with https://'],
    ],
    [
      `endpoints: [https://pve1:8006/x], ${TOKEN}`,
      ['proxmox.lab.endpoints[0]: must not contain a path; write https://host:port'],
    ],
    [
      `${ENDPOINT}, ${TOKEN}, tls: { insecure: true, caFile: ca.pem }`,
      [
        "proxmox.lab.tls.caFile: has no effect together with 'insecure: true'; keep only one of them",
        '(warning) proxmox.lab.tls.insecure: the API certificate is not verified, so any server can receive the credentials; set caFile or fingerprints instead',
      ],
    ],
    [
      `${ENDPOINT}, ${TOKEN}, tls: { fingerprints: ["AB:CD"] }`,
      [
        'proxmox.lab.tls.fingerprints[0]: must be a SHA-256 fingerprint: 32 octets in hex, with or without colons',
      ],
    ],
    [
      `${ENDPOINT}, ${TOKEN}, hosts: { allow: [pve1], deny: [pve1] }`,
      ["proxmox.lab.hosts.deny[0]: host 'pve1' is also in 'allow'"],
    ],
    [
      `${ENDPOINT}, ${TOKEN}, managedTag: "Big Tag"`,
      [
        "proxmox.lab.managedTag: is not a valid Proxmox tag; use lower-case letters, digits, '_', '+', '.' and '-', and start with a letter, digit or '_'",
      ],
    ],
    ['transport: { ssh: { privateKeyFile: k, hosts: [pve1.local] } }', []],
    ['transport: { ssh: { privateKeyFile: k } }, hosts: { allow: [pve1] }', []],
    [
      `transport: { ssh: { agent: true, hosts: [pve1, 'pve2:2222'], hostKeys: ['SHA256:${'a'.repeat(43)}'] } }`,
      [],
    ],
    [
      'transport: { ssh: { hosts: [pve1] } }',
      ["proxmox.lab.transport.ssh: needs 'privateKeyFile', or 'agent: true'"],
    ],
    [
      'transport: { ssh: { hosts: [pve1, pve1], privateKeyFile: k } }',
      ['proxmox.lab.transport.ssh.hosts[1]: appears twice in the list'],
    ],
    [
      'transport: { ssh: { hosts: [pve1], privateKeyFile: k, agent: true } }',
      [
        "proxmox.lab.transport.ssh.agent: cannot be combined with 'privateKeyFile'; keep only one of them",
      ],
    ],
    [
      `transport: { ssh: { hosts: [pve1], privateKeyFile: k, knownHosts: f, hostKeys: ['SHA256:${'a'.repeat(43)}'] } }`,
      [
        "proxmox.lab.transport.ssh.hostKeys: cannot be combined with 'knownHosts'; keep only one of them",
      ],
    ],
    [
      'transport: { ssh: { privateKeyFile: k } }',
      ["proxmox.lab.transport.ssh: needs 'hosts', here or as 'hosts.allow' of the region"],
    ],
    [
      `${ENDPOINT}, ${TOKEN}, transport: ssh`,
      ['proxmox.lab.transport: expected `rest`, or a mapping with the key `ssh`, not text'],
    ],
  ])('report %s', (lines, expected) => {
    expect([...found(region(lines))].sort()).toEqual([...expected].sort());
  });

  it('allow a pool to use a subset of the hosts of a region', () => {
    const text = (allow: string) =>
      VALID.replace('images:', '    hosts: { allow: [pve1, pve2], deny: [pve3] }\nimages:').concat(
        `    placement: { hosts: { allow: [${allow}] } }\n`,
      );
    expect(found(text('pve2'))).toEqual([]);
    expect(found(text('pve1, pve9'))).toEqual([
      "pools[0].placement.hosts.allow[1]: host 'pve9' is not in any region of the pool",
    ]);
    const denied = text('pve3').replace('allow: [pve1, pve2], deny', 'deny');
    expect(found(denied)).toEqual([
      "pools[0].placement.hosts.allow[0]: host 'pve3' is not in any region of the pool",
    ]);
  });

  it('refuse two regions with the same endpoint', () => {
    const text = `${REGION_LINES}  two: { ${ENDPOINT}, ${TOKEN}, vmIds: 100-200 }\n`;
    expect(found(text)).toEqual([
      "proxmox.two.endpoints[0]: is also an endpoint of region 'lab'; one Proxmox cluster must be one region",
    ]);
  });
});

describe('checks of VM ids', () => {
  it('refuse overlapping ranges of two regions, explicit or by default', () => {
    const text = `${REGION_LINES}  two: { endpoints: [https://b:8006], ${TOKEN} }\n`;
    expect(found(text)).toEqual([
      "proxmox.two.vmIds: VM ids 20000-29999 overlap 20000-29999 of region 'lab'; use a separate range for each region",
    ]);
  });

  it('refuse a template id in the range of machines', () => {
    const text = `${REGION_LINES}templates:\n  a: { id: 20000 }\n  b: { id: { pve1: 9000, pve2: 29999 } }\n`;
    expect(found(text)).toEqual([
      "templates.a.id: VM id 20000 is in the vmIds range of region 'lab', which is reserved for machines",
      "templates.b.id.pve2: VM id 29999 is in the vmIds range of region 'lab', which is reserved for machines",
    ]);
  });

  it('warn about fewer ids than machines', () => {
    const text = VALID.replace(
      'secretFile: /etc/token }',
      'secretFile: /etc/token }\n    vmIds: 100-104',
    );
    expect(found(text)).toEqual([
      '(warning) proxmox.lab.vmIds: the range has 5 VM ids, but the pools of this region may have 10 machines',
    ]);
  });
});

describe('checks of servers and state', () => {
  it.each([
    [
      'mode: externalgrpc\n',
      [
        "grpc: mode externalgrpc needs 'tls' (cert, key, clientCa), or 'insecure: true', with which every client that can reach the port can create and delete VMs",
      ],
    ],
    [
      'mode: externalgrpc\ngrpc: { insecure: true }\n',
      [
        '(warning) grpc.insecure: every client that can reach the port can create and delete VMs; configure tls',
      ],
    ],
    [
      'mode: externalgrpc\ngrpc: { tls: { cert: a, key: b, clientCa: c, allow: [] } }\n',
      ['(warning) grpc.tls.allow: the list is empty, so every client is rejected'],
    ],
    [
      'grpc: { insecure: true, tls: { cert: a, key: b, clientCa: c } }\n',
      ["grpc.insecure: cannot be combined with 'tls'; keep only one of them"],
    ],
    [
      'grpc: { tls: { cert: a } }\n',
      ["grpc.tls: key 'key' is missing", "grpc.tls: key 'clientCa' is missing"],
    ],
    [
      'http: { dashboard: ":9000" }\n',
      [
        '(warning) http.dashboard: the dashboard has no authentication and is reachable from other machines; listen on 127.0.0.1 or put an authenticating proxy in front',
      ],
    ],
    [
      'http: { dashboard: "127.0.0.1:8080" }\n',
      ['http.dashboard: uses the same address and port as http.health'],
    ],
    ['http: { dashboard: "off", health: "off" }\n', []],
    [
      'state: { path: /tmp/state.db }\n',
      [expect.stringContaining('(warning) state.path: /tmp may be emptied at any time')],
    ],
    ['state: { path: /tmp/state.db, kubernetes: {} }\n', []],
  ])('report %j', (text, expected) => {
    expect(found(`${text}${REGION_LINES}`)).toEqual(expected);
  });
});

describe('checks of images, templates and recipes', () => {
  const URL = 'url: https://x/y.img';

  it.each([
    [
      `images: { a: { ${URL} } }`,
      [
        "images.a: needs 'checksumUrl' or 'checksum', or 'unverified: true' to accept the image without a checksum",
      ],
    ],
    [
      `images: { a: { ${URL}, unverified: true } }`,
      [
        '(warning) images.a: the image is not verified; an attacker who controls the download controls your nodes',
      ],
    ],
    [
      `images: { a: { ${URL}, unverified: true, checksumUrl: https://x/S } }`,
      ["images.a.unverified: cannot be combined with 'checksumUrl'; keep only one of them"],
    ],
    [
      `images: { a: { ${URL}, checksum: "sha256:${'0'.repeat(64)}", checksumUrl: https://x/S } }`,
      ["images.a.checksum: cannot be combined with 'checksumUrl'; keep only one of them"],
    ],
    ['templates: { a: {} }', ["templates.a: needs 'name' or 'id' to identify the template"]],
    [
      'templates: { a: { name: t, image: x } }',
      ["templates.a.image: image 'x' is not defined; 'images' is empty"],
    ],
    [
      'templates: { a: { name: t, packages: [htop vim], files: [{ path: etc/motd, content: x }], sources: [{ name: d, source: deb https://x jammy, keyUrl: https://x/k }] } }',
      [
        'templates.a.packages[0]: must be the name of one package, with or without a version: htop, or htop=3.0.5-7',
        'templates.a.files[0].path: must be an absolute path in the guest',
        "templates.a.sources[0].source: must be URL, suite and components without 'deb', such as https://download.docker.com/linux/ubuntu jammy stable",
      ],
    ],
    ['join: { custom: {} }', ["join.custom: needs 'scriptFile' or 'cloudConfigFile'"]],
    [
      'join: { custom: { via: agent, cloudConfigFile: x } }',
      ["join.custom: needs 'scriptFile' when 'via' is 'agent'"],
    ],
    [
      'join: { kubeadm: { files: [{ path: /a }, { path: /b, content: x, contentFile: y }, { path: c, content: x }] } }',
      ['join.kubeadm.files[2].path: must be an absolute path in the guest'],
    ],
    [
      'join: { kubeadm: { files: [{ path: /a }, { path: /b, content: x, contentFile: y }] } }',
      [
        "join.kubeadm.files[0]: needs 'content' or 'contentFile'",
        "join.kubeadm.files[1].contentFile: cannot be combined with 'content'; keep only one of them",
      ],
    ],
    [
      'join: { kubeadm: { token: {} } }',
      ['join.kubeadm.token: needs a secret; set one of secretFile, secretEnv, secretRef'],
    ],
    ['join: { kubeadm: { token: { secretRef: { name: s } } } }', []],
    ['join: { k3s: { server: https://k, tokenTtl: 2h } }', ['join.k3s.tokenTtl: is more than 1h']],
    [
      'join: { k3s: { server: https://k, version: 1.33.4 } }',
      ["join.k3s.version: must be a version such as 'v1.34.4+k3s1'"],
    ],
  ])('report %s', (text, expected) => {
    expect(found(`${REGION_LINES}${text}\n`)).toEqual(expected);
  });
});

describe('checks of pools', () => {
  const POOL = 'name: a, size: { cpu: 2, memory: 4Gi }';

  function pools(...items: string[]): string {
    return `${REGION_LINES}${IMAGE_LINES}sizes: { big: { cpu: 8, memory: 32Gi } }\npools:\n${items.map((item) => `  - { ${item} }\n`).join('')}`;
  }

  it.each([
    [[POOL, POOL], ["pools[1].name: pool 'a' is already defined"]],
    [
      [`${POOL}, regions: [lap]`],
      ["pools[0].regions[0]: region 'lap' is not defined; did you mean 'lab'?"],
    ],
    [[`${POOL}, regions: [lab, lab]`], ['pools[0].regions[1]: appears twice in the list']],
    [
      [`${POOL}, placement: { hosts: { allow: [pve1], deny: [pve1, pve2] } }`],
      ["pools[0].placement.hosts.deny[0]: host 'pve1' is also in 'allow'"],
    ],
    [
      [`${POOL}, extendedResources: { cpu: 1 }`],
      [
        "pools[0].extendedResources.cpu: is not an extended resource; its name needs a domain, such as 'example.com/device'",
      ],
    ],
    [
      [`${POOL}, extendedResources: { kubernetes.io/x: 1 }`],
      [
        'pools[0].extendedResources["kubernetes.io/x"]: is not an extended resource; its name needs a domain, such as \'example.com/device\'',
      ],
    ],
    [
      [`${POOL}, extendedResources: { a/b: 1.5 }`],
      ['pools[0].extendedResources["a/b"]: must be a whole number'],
    ],
    [[`${POOL}, extendedResources: { a/b: 2, hugepages-2Mi: 1Gi }`], []],
    [
      [`${POOL}, gpu: { type: t4, resource: cpu }`],
      [
        "pools[0].gpu.resource: is not an extended resource; its name needs a domain, such as 'example.com/device'",
      ],
    ],
    [
      [`${POOL}, schedules: [{ start: "99 99 * * *", duration: 1h }]`],
      [
        "pools[0].schedules[0].start: has an invalid minute field; use a '*' or numbers from 0 to 59, as 'a,b', 'a-b' or '*/step'",
      ],
    ],
    [['name: a, size: bigg'], ["pools[0].size: size 'bigg' is not defined; did you mean 'big'?"]],
    [
      ['name: a, size: [big, huge]'],
      ["pools[0].size[1]: size 'huge' is not defined; 'sizes' defines 'big'"],
    ],
    [
      [`${POOL}, from: { image: jamy }`],
      ["pools[0].from.image: image 'jamy' is not defined; did you mean 'jammy'?"],
    ],
    [
      [`${POOL}, from: { template: t }`],
      ["pools[0].from.template: template 't' is not defined; 'templates' is empty"],
    ],
    [
      [`${POOL}, from: { image: jammy, template: t }`],
      [
        "pools[0].from: expected a mapping with one of image, template or netboot, not a mapping with 'image', 'template'",
      ],
    ],
    [[`${POOL}, join: k3s`], ["pools[0].join: join recipe 'k3s' is not defined in 'join'"]],
    [[`${POOL}, limits: { min: 3, max: 2 }`], ['pools[0].limits.min: min 3 is more than max 2']],
    [
      [`${POOL}, schedules: [{ start: "0 7 * * 1-5", duration: 1h, min: 20 }]`],
      ['pools[0].schedules[0]: min 20 is more than max 10'],
    ],
    [
      [`${POOL}, schedules: [{ start: "0 7 * *", duration: 1h, timeZone: Mars }]`],
      [
        'pools[0].schedules[0].start: must have five fields: minute, hour, day, month, weekday',
        "pools[0].schedules[0].timeZone: must be a time zone such as 'Europe/Berlin'",
      ],
    ],
    [
      [`${POOL}, clusterAutoscaler: { minKeptBy: cluster-autoscaler }`],
      [
        'pools[0].clusterAutoscaler.minKeptBy: needs mode externalgrpc: in this mode no Cluster Autoscaler keeps the minimum',
      ],
    ],
    [
      [`${POOL}, balloon: 8Gi`],
      ['pools[0].balloon: is more than the memory of the smallest machine'],
    ],
    [
      [`${POOL}, names: { prefix: ${'x'.repeat(50)}, role: worker }`],
      [
        'pools[0].names: machine names would be 66 characters long; host names have at most 63 characters',
      ],
    ],
    [
      [`${POOL}, labels: { autoscaler.proxmox/group: b }`],
      [
        'pools[0].labels["autoscaler.proxmox/group"]: is the groupLabel of the pool, so its value must be the pool name \'a\'',
      ],
    ],
    [
      [`${POOL}, groupLabel: "a b"`],
      [
        "pools[0].groupLabel: key must be letters, digits, '-', '_' and '.', and start and end with a letter or digit",
      ],
    ],
    [
      [`${POOL}, labels: { "a b": c }`],
      [expect.stringContaining('pools[0].labels["a b"]: key must be letters')],
    ],
    [
      [`${POOL}, labels: { a: true }`],
      ['pools[0].labels.a: expected a label value, not true or false; put it in quotes'],
    ],
    [
      [`${POOL}, taints: [{ key: a, effect: NoSched }]`],
      [
        "pools[0].taints[0].effect: must be one of NoSchedule, PreferNoSchedule, NoExecute; did you mean 'NoSchedule'?",
      ],
    ],
    [
      [`${POOL}, taints: ["dedicated"]`],
      ["pools[0].taints[0]: taint has no effect; write '…:NoSchedule'"],
    ],
    [
      [`${POOL}, vmOptions: { args: x, cores: 2 }`],
      [
        'pools[0].vmOptions.args: is not allowed: it passes raw arguments to the hypervisor process, which runs as root on the host',
        'pools[0].vmOptions.cores: is set by pvescaler from size.cpu; remove it',
      ],
    ],
  ])('report %j', (items, expected) => {
    expect(found(pools(...items))).toEqual(expected);
  });

  it('require a source and a join recipe when there is more than one', () => {
    const text = `${VALID.replace('images:\n', 'images:\n  noble: { url: https://x/n.img, checksumUrl: https://x/S }\n')}join: { kubeadm: {}, custom: { scriptFile: x } }\n`;
    expect(found(text)).toEqual([
      "pools[0]: needs 'from': { image: … }, { template: … } or { netboot: {} }; there is no single image or template to use by default",
      "pools[0]: needs 'join', because there is more than one join recipe",
    ]);
  });

  it.each([
    ['size: [big, small]', []],
    [
      'size: { min: { cpu: 1, memory: 2Gi }, max: { cpu: 4, memory: 8Gi } }',
      [
        "pools[0].size: a range cannot be used in mode externalgrpc, because all machines of a node group must be alike; list sizes that 'sizes' defines, such as [small, large]: each becomes the node group a-SIZE",
      ],
    ],
    [
      'size: [big, { cpu: 2, memory: 4Gi }]',
      [
        "pools[0].size[1]: needs a name in mode externalgrpc, because each size of a list is a node group of its own, a-SIZE; define it in 'sizes' and write its name here",
      ],
    ],
    ['size: big, clusterAutoscaler: { minKeptBy: pvescaler }', []],
    ['size: [big, big]', ["pools[0].size[1]: size 'big' appears twice in the list"]],
    [
      'size: [big, same]',
      [
        "pools[0].size[1]: size 'same' is equal to 'big'; machines of two node groups must differ in cpu, memory or disk",
      ],
    ],
    [
      'size: [big, small], labels: { node.kubernetes.io/instance-type: x }',
      [
        'pools[0].labels["node.kubernetes.io/instance-type"]: tells the sizes of the list apart, so it is set by pvescaler; remove it',
      ],
    ],
  ])('in mode externalgrpc report %s', (lines, expected) => {
    const text = externalGrpc(`  - { name: a, ${lines} }`);
    expect(found(text)).toEqual(expected);
    expect(found(text.replace('mode: externalgrpc', 'mode: standalone'))).toEqual([]);
  });

  it('refuse a pool whose name is the node group of another pool', () => {
    const text = externalGrpc(
      '  - { name: a, size: [big, small] }',
      '  - { name: a-small, size: big }',
    );
    expect(found(text)).toEqual([
      "pools[0].size[1]: its node group 'a-small' has the name of another pool or node group; rename the size or the pool",
    ]);
  });

  it('refuse a disk that is smaller than the template', () => {
    const text = `${VALID}templates: { t: { name: t, image: jammy, disk: 30Gi } }\n`;
    expect(found(text)).toEqual([
      'pools[0].size: has a smaller disk than the template; disks cannot shrink',
    ]);
  });
});

function externalGrpc(...pools: readonly string[]): string {
  const sizes = ['big', 'same'].map((name) => `${name}: { cpu: 2, memory: 4Gi }`);
  return [
    'mode: externalgrpc',
    'grpc: { tls: { cert: c, key: k, clientCa: a, allow: [ca] } }',
    `sizes: { ${sizes.join(', ')}, small: { cpu: 1, memory: 2Gi } }`,
    `${REGION_LINES}${IMAGE_LINES}pools:`,
    ...pools,
    '',
  ].join('\n');
}

describe('checks of addresses', () => {
  function pool(ip: string, more = 'limits: { max: 2 }'): string {
    return `${VALID}    ${more}\n    network: { ip: ${ip} }\n`;
  }

  it.each([
    ['{ pool: 10.0.0.10-10.0.0.11, prefix: 24, gateway: 10.0.0.1 }', []],
    [
      '{ pool: 10.0.0.10, prefix: 24 }',
      ['ip.pool: has 1 addresses, but the pool may have 2 machines (limits.max)'],
    ],
    [
      '{ pool: 10.0.0.10-10.0.0.11, prefix: 24, gateway: 10.0.1.1 }',
      ['ip.gateway: is not in the subnet of the pool'],
    ],
    [
      '{ pool: 10.0.0.10-10.0.0.11, prefix: 24, gateway: 10.0.0.10 }',
      ['ip.gateway: is one of the addresses of the pool'],
    ],
    [
      '{ pool: 10.0.0.10-10.0.0.11, prefix: 24, gateway: "fd00::1" }',
      ['ip.gateway: is not in the subnet of the pool'],
    ],
    [
      '{ pool: 10.0.0.10-10.0.0.11, prefix: 4 }',
      ['ip.prefix: is too short for a subnet; write the prefix length of the subnet, such as 24'],
    ],
    ['{ pool: 10.0.0.10-10.0.0.11, prefix: 64 }', ['ip.prefix: must be at most 32 for IPv4']],
    [
      '{ pool: 10.0.0.250-10.0.1.5, prefix: 24 }',
      ['ip.pool: is not inside one subnet with prefix length 24'],
    ],
    [
      '{ pool: 10.0.0.0-10.0.0.5, prefix: 24 }',
      [
        'ip.pool: contains the network or broadcast address of the subnet, which machines cannot use',
      ],
    ],
    [
      '{ pool: [10.0.0.5-10.0.0.8, 10.0.0.8], prefix: 24 }',
      ['ip.pool: contains ranges that overlap'],
    ],
    [
      '{ pool: ["10.0.0.5-10.0.0.8", "fd00::1"], prefix: 24 }',
      [
        'ip.pool: is not inside one subnet with prefix length 24',
        'ip.pool: must contain only IPv4 addresses',
      ],
    ],
    [
      '{ v4: { pool: "fd00::1-fd00::9", prefix: 64 } }',
      ['ip.v4.pool: must contain only IPv4 addresses'],
    ],
    ['{ v6: { pool: "fd00::1-fd00::9", prefix: 64, gateway: "fd00::ff" } }', []],
    ['{ pool: 10.0.0.5-10.0.0.x, prefix: 24 }', ['ip.pool: range end is not an IP address']],
    [
      'static',
      [
        'ip: expected `dhcp`, a mapping with pool, prefix and gateway, or a mapping with v4 and v6, not text',
      ],
    ],
    [
      '{ v4: auto }',
      ['ip.v4: expected `dhcp`, `off`, or a mapping with pool, prefix and gateway, not text'],
    ],
  ])('report %s', (ip, expected) => {
    expect([...found(pool(ip))].sort()).toEqual(expected.map((line) => `pools[0].network.${line}`));
  });

  it('count the machines that a schedule allows', () => {
    const text = pool(
      '{ pool: 10.0.0.10-10.0.0.11, prefix: 24 }',
      'limits: { max: 2 }\n    schedules: [{ start: "0 7 * * *", duration: 1h, max: 3 }]',
    );
    expect(found(text)).toEqual([
      'pools[0].network.ip.pool: has 2 addresses, but the pool may have 3 machines (limits.max)',
    ]);
  });

  it('refuse the same addresses in two pools of one network', () => {
    const second = (network: string) =>
      `${pool('{ pool: 10.0.0.10-10.0.0.11, prefix: 24 }')}  - name: b\n    size: { cpu: 1, memory: 1Gi }\n    limits: { max: 1 }\n    network: ${network}\n`;
    expect(found(second('{ ip: { pool: 10.0.0.11-10.0.0.12, prefix: 24 } }'))).toEqual([
      "pools[1].network.ip.pool: contains addresses that pool 'small' also uses",
    ]);
    expect(
      found(second('{ interfaces: [{ vlan: 7 }], ip: { pool: 10.0.0.11-10.0.0.12, prefix: 24 } }')),
    ).toEqual([]);
  });
});
