// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  IMAGE_LINES,
  loadProblems,
  loadText,
  REGION_LINES,
  renderedProblems,
  VALID,
} from '../testing/load-text.ts';

/** A config whose pool has additional lines; the pool starts in line 7. */
function pool(lines: string): string {
  return `${REGION_LINES}${IMAGE_LINES}pools:\n  - name: small\n${lines}`;
}

const SIZE = '    size: { cpu: 2, memory: 4Gi }\n';

describe('a valid file', () => {
  it('loads without problems', () => {
    expect(loadProblems(VALID)).toEqual([]);
  });
});

describe('unknown keys', () => {
  it.each([
    ['poools: []\n', "c.yaml:1:1: error: poools: unknown key; did you mean 'pools'?"],
    [
      'node_groups: []\n',
      "c.yaml:1:1: error: node_groups: unknown key; the equivalent key is 'pools'. 'pvescaler config import' converts whole files",
    ],
    [
      'log: { lvl: info }\n',
      'c.yaml:1:8: error: log.lvl: unknown key; allowed keys are level, format',
    ],
    [
      'log: {}\nlog: {}\n',
      "c.yaml:2:1: error: key 'log' is a duplicate; it first appears in line 1",
    ],
    ['__proto__: {}\n', expect.stringMatching(/^c\.yaml:1:1: error: __proto__: unknown key/)],
    [
      '1f0c2b9e-7d35-4c8e-9a43-0b6f52d9c1aa: 1\n',
      expect.stringMatching(/^c\.yaml:1:1: error: \[…\]: unknown key/),
    ],
  ])('%j is reported with a hint', (text, line) => {
    expect(loadProblems(`${text}${VALID}`)).toEqual([line]);
  });

  it('suggests a similar key in a nested section', () => {
    expect(loadProblems(pool(`${SIZE}    scaleDown: { drain_timeout: 5m }\n`))).toEqual([
      "c.yaml:10:18: error: pools[0].scaleDown.drain_timeout: unknown key; did you mean 'drainTimeout'?",
    ]);
  });

  it('suggests our key for a key of another system', () => {
    expect(loadProblems(pool(`${SIZE}    balloon_mb: 512\n    min_size: 2\n`))).toEqual([
      "c.yaml:10:5: error: pools[0].balloon_mb: unknown key; did you mean 'balloon'?",
      "c.yaml:11:5: error: pools[0].min_size: unknown key; the equivalent key is 'pools[].limits.min'. 'pvescaler config import' converts whole files",
    ]);
  });
});

describe('values of the wrong type', () => {
  it('says how a range of VM ids is written', () => {
    const problems = loadProblems('proxmox: { lab: { vmIds: 1250 } }\n').join('\n');
    expect(problems).toContain(
      'proxmox.lab.vmIds: expected a VM id range, not a number; write the first and the last, such as 1250-1300',
    );
  });

  it.each([
    ['mode: 3\n', 'mode: must be one of standalone, externalgrpc'],
    [
      'mode: standalon\n',
      "mode: must be one of standalone, externalgrpc; did you mean 'standalone'?",
    ],
    ['state: { kubernetes: true }\n', 'state.kubernetes: expected a mapping, not true or false'],
    [
      'state: { kubernetes: { nampespace: a } }\n',
      "state.kubernetes.nampespace: unknown key; did you mean 'namespace'?",
    ],
    ['state: /x\n', 'state: expected a mapping, not text'],
    ['state: { path: 3 }\n', 'state.path: expected a path, not a number; put it in quotes'],
    ['state:\n', 'state: has no value; expected a mapping, or remove the key'],
    ['http: { metrics: "yes" }\n', 'http.metrics: expected true or false, not text'],
    [
      'guards: { okTotalUnreadyCount: 1.5 }\n',
      'guards.okTotalUnreadyCount: expected a whole number, not a fraction',
    ],
    ['guards: { okTotalUnreadyCount: -1 }\n', 'guards.okTotalUnreadyCount: must be at least 0'],
    [
      'guards: { maxTotalUnreadyPercentage: 101 }\n',
      'guards.maxTotalUnreadyPercentage: must be at most 100',
    ],
    [
      'guards: { okTotalUnreadyCount: "3" }\n',
      'guards.okTotalUnreadyCount: expected a number, not text; remove the quotes',
    ],
    ['pools: small\n', 'pools: expected a list, not text; put it in square brackets'],
    ['intervals: { scan: 15 }\n', "intervals.scan: missing unit; did you mean '15s'?"],
    ['intervals: { scan: 15 sec }\n', 'intervals.scan: duration contains white space'],
    ['intervals: { reconcile: 1s }\n', 'intervals.reconcile: is less than 5s'],
    ['apiVersion: v1\n', 'apiVersion: must be pvescaler.dev/v1alpha1'],
    [
      'ssh: { publicKeys: ssh-ed25519 }\n',
      'ssh.publicKeys: expected a list, not text; put it in square brackets',
    ],
    [
      'ssh: { publicKeys: [nonsense] }\n',
      'ssh.publicKeys[0]: must be one line of an SSH public key file; a path belongs to publicKeyFiles',
    ],
    [
      'http: { health: "8080" }\n',
      "http.health: must have the form 'host:port', ':port' or '[IPv6 address]:port'",
    ],
    [
      'images: { "a b": { url: https://x/y, unverified: true } }\n',
      expect.stringContaining('images["a b"]: is not a valid name'),
    ],
    ['images: { a: { checksumUrl: https://x/y } }\n', "images.a: key 'url' is missing"],
    [
      'images: { a: { url: "ftp://x/y", unverified: true } }\n',
      'images.a.url: must be a URL that starts with http:// or https://',
    ],
    [
      'images: { a: { url: "https://me:pw@x/y", unverified: true } }\n',
      'images.a.url: must not contain a user or password; configure credentials with their own keys',
    ],
  ])('%j is an error', (text, message) => {
    const found = loadText(`${text}${REGION_LINES}`).problems.filter(
      ({ severity }) => severity === 'error',
    );
    expect(found.map(({ path, message }) => `${path}: ${message}`)).toEqual([message]);
    expect(found.every(({ file, line }) => file === 'c.yaml' && line === 1)).toBe(true);
  });
});

describe('messages that share words with the value', () => {
  it.each([
    [
      'checksum: "sha256:abc"',
      "images.a.checksum: must be 'sha256:' followed by 64 hex digits, or 'sha512:' followed by 128",
    ],
    [
      'checksum: "sha256:abc\'sha512:"',
      "images.a.checksum: must be 'sha256:' followed by 64 hex digits, or 'sha512:' followed by 128",
    ],
  ])('%s', (key, line) => {
    const text = `${REGION_LINES}images: { a: { url: https://x/y, ${key} } }\n`;
    expect(loadText(text).problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      line,
    ]);
  });

  it.each([
    [
      'network: { interfaces: [{ macPrefix: "02:00:00:00:00:00" }] }',
      "network.interfaces[0].macPrefix: must be one to five octets such as '02:00:00'",
    ],
    [
      'network: { ip: { pool: 10.0.0.11-10.0.0.19-x, prefix: 24 } }',
      "network.ip.pool: must be a range such as '10.0.0.11-10.0.0.19'",
    ],
    ['taints: [hunter2]', "taints[0]: taint has no effect; write '…:NoSchedule'"],
  ])('%s', (key, line) => {
    const text = pool(`${SIZE}    ${key}\n`);
    expect(loadText(text).problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      `pools[0].${line}`,
    ]);
  });
});

describe('sizes in one of four forms', () => {
  it.each([
    ['medium', "8:11 pools[0].size: size 'medium' is not defined; 'sizes' is empty"],
    ['{ cpu: 2 }', "8:5 pools[0].size: key 'memory' is missing"],
    [
      '{ cpu: 2, memry: 4Gi, memory: 4Gi }',
      "8:21 pools[0].size.memry: unknown key; did you mean 'memory'?",
    ],
    ['{ cpu: two, memory: 4Gi }', '8:18 pools[0].size.cpu: expected a number, not text'],
    [
      '{ cpu: 2, memory: 4gb }',
      "8:29 pools[0].size.memory: unknown suffix 'gb'; did you mean 'G' or 'Gi'?",
    ],
    [
      '{ cpu: 2, memory: 4 }',
      "8:29 pools[0].size.memory: is only 4 bytes; add a unit, such as '2Gi' or '512Mi'",
    ],
    ['[]', '8:11 pools[0].size: must have at least one entry'],
    [
      '[3]',
      '8:12 pools[0].size[0]: expected the name of a size, or a mapping with cpu, memory and disk, not a number',
    ],
    ['{ min: { cpu: 1, memory: 2Gi } }', "8:5 pools[0].size: key 'max' is missing"],
    [
      '{ min: { cpu: 4, memory: 2Gi }, max: { cpu: 2, memory: 4Gi } }',
      '8:25 pools[0].size.min.cpu: is more than the value in max',
    ],
    [
      '7',
      '8:11 pools[0].size: expected the name of a size, a mapping with cpu, memory and disk, a list of those, or a mapping with min, max and step, not a number',
    ],
    [
      '{ foo: 1 }',
      "8:11 pools[0].size: expected the name of a size, a mapping with cpu, memory and disk, a list of those, or a mapping with min, max and step, not a mapping with 'foo'",
    ],
    [
      '{}',
      '8:11 pools[0].size: expected the name of a size, a mapping with cpu, memory and disk, a list of those, or a mapping with min, max and step, not an empty mapping',
    ],
    [
      '{ cpu: 2, memory: 4Gi, min: {} }',
      '8:34 pools[0].size.min: cannot be combined with the other keys here; expected the name of a size, a mapping with cpu, memory and disk, a list of those, or a mapping with min, max and step',
    ],
    ['{ cpu: .nan, memory: 4Gi }', '8:18 pools[0].size.cpu: expected a number, not .nan'],
    [
      '{ cpu: 2, memory: Gi }',
      "8:29 pools[0].size.memory: has no number; write a number with a unit, such as '2Gi'",
    ],
  ])('%s', (size, line) => {
    const { problems } = loadText(pool(`    size: ${size}\n`));
    expect(
      problems.map((found) => `${found.line - 1}:${found.col} ${found.path}: ${found.message}`),
    ).toEqual([line]);
  });
});

describe('messages about values with several forms', () => {
  it.each([
    [
      'from: { image: jammy, template: t }',
      "from: expected a mapping with one of image, template or netboot, not a mapping with 'image', 'template'",
    ],
    ['limits: { max: 99999999999999999999 }', 'limits.max: must be at most 10000'],
    [
      'limits: { memory: Gi }',
      "limits.memory: has no number; write a number with a unit, such as '2Gi'",
    ],
    [
      'limits: { memory: "-" }',
      "limits.memory: has no number; write a number with a unit, such as '2Gi'",
    ],
    [
      'memoryOverhead: "."',
      "memoryOverhead: has no number; write a number with a unit, such as '2Gi'",
    ],
    [
      'vmOptions: { cpu: {} }',
      'vmOptions.cpu: expected text, a number or true/false, not a mapping',
    ],
  ])('%s', (key, line) => {
    const { problems } = loadText(pool(`${SIZE}    ${key}\n`));
    expect(problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      `pools[0].${line}`,
    ]);
  });

  it('suggest a key for its prefix', () => {
    const text = `sizes: { x: { cpu: 1, memory: 1Gi, mem: 1Gi } }\n${VALID}`;
    expect(loadProblems(text)).toEqual([
      "c.yaml:1:36: error: sizes.x.mem: unknown key; did you mean 'memory'?",
    ]);
  });
});

describe('a secret in the file is refused without being repeated', () => {
  const SECRET = 'hunter2-and-more';

  it.each([
    [
      `token: { id: "a@pve!b", secret: ${SECRET} }`,
      'proxmox.lab.token.secret: do not write secrets into the file; use secretFile, secretEnv or secretRef',
    ],
    [
      `token: ${SECRET}`,
      'proxmox.lab.token: expected a mapping, not text; do not write secrets into the file: refer to a file, an environment variable or a Kubernetes Secret',
    ],
    [
      `token: { id: "a@pve!b=${SECRET}", secretFile: /x }`,
      "proxmox.lab.token.id: contains more than the token id; write only 'user@realm!name' and name the secret with secretFile",
    ],
    [
      `password: ${SECRET}`,
      'proxmox.lab.password: do not write secrets into the file; use passwordFile, passwordEnv or passwordRef',
    ],
  ])('%s', (line, message) => {
    const text = `proxmox:\n  lab:\n    endpoints: [https://pve1:8006]\n    ${line}\n`;
    const lines = loadProblems(text);
    expect(lines.join('\n')).toContain(`error: ${message}`);
    expect(lines.join('\n')).not.toContain(SECRET);
  });

  it('in a join recipe', () => {
    const lines = loadProblems(
      `${VALID}join: { k3s: { server: https://k:6443, token: ${SECRET} } }\n`,
    );
    expect(lines).toEqual([
      'c.yaml:10:47: error: join.k3s.token: expected `auto`, or a mapping with secretFile, secretEnv or secretRef, not text; do not write secrets into the file: refer to a file, an environment variable or a Kubernetes Secret',
    ]);
  });
});

describe('a token in agent arguments is refused', () => {
  it.each([
    'k3s: { server: https://k:6443, agentArgs: [--token, hunter2] }',
    'k3s: { server: https://k:6443, agentArgs: ["--token hunter2"] }',
    'k3s: { server: https://k:6443, agentArgs: ["-t", hunter2] }',
    'rke2: { server: https://k:9345, agentArgs: ["--agent-token=hunter2"] }',
    'kubeadm: { kubeletArgs: ["--bootstrap-token hunter2"] }',
    'kubeadm: { kubeletArgs: ["bootstrap-token=hunter2"] }',
  ])('%s', (recipe) => {
    const { problems } = loadText(`${VALID}join: { ${recipe} }\n`);
    expect(problems.map(({ message }) => message)).toEqual([
      "passes a token; set the join token with the key 'token' instead",
    ]);
  });

  it('but an argument that only refers to a token is accepted', () => {
    const args = '["--token-file=/etc/x", "--authentication-token-webhook=true", "-v=4"]';
    expect(loadProblems(`${VALID}join: { kubeadm: { kubeletArgs: ${args} } }\n`)).toEqual([]);
  });
});

describe('all problems in one run', () => {
  it('reports schema issues and findings of the checks together', () => {
    const text = `mod: x
proxmox:
  north: { endpoints: [https://n:8006], token: { id: "a@pve!b", secretFile: x }, vmIds: 100-200 }
  south: { endpoints: [https://s:8006], token: { id: "a@pve!b", secretFile: x }, vmIds: 150-250 }
images:
  jammy: { url: https://images/jammy.img }
pools:
  - name: Small
    size: { cpu: 2, memory: 4Gi }
    from: { image: jamy }
  - name: b
    size: { cpu: 2, memory: 4gb }
    limits: { min: 3, max: 2 }
    network: { ip: { pool: 10.0.0.10-10.0.0.11, prefix: 24 } }
`;
    expect(loadProblems(text)).toEqual([
      "c.yaml:1:1: error: mod: unknown key; did you mean 'mode'?",
      "c.yaml:4:89: error: proxmox.south.vmIds: VM ids 150-250 overlap 100-200 of region 'north'; use a separate range for each region",
      "c.yaml:6:10: error: images.jammy: needs 'checksumUrl' or 'checksum', or 'unverified: true' to accept the image without a checksum",
      "c.yaml:8:11: error: pools[0].name: is not a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit",
      "c.yaml:10:20: error: pools[0].from.image: image 'jamy' is not defined; did you mean 'jammy'?",
      "c.yaml:12:29: error: pools[1].size.memory: unknown suffix 'gb'; did you mean 'G' or 'Gi'?",
      'c.yaml:13:20: error: pools[1].limits.min: min 3 is more than max 2',
    ]);
  });

  it('does not report a reference to an entry that is defined but invalid', () => {
    const text = `${REGION_LINES}images: { jammy: { url: 3, checksumUrl: https://x/y } }\npools: [{ name: a, size: { cpu: 1, memory: 1Gi }, from: { image: jammy } }]\n`;
    expect(loadProblems(text)).toEqual([
      'c.yaml:5:25: error: images.jammy.url: expected a URL, not a number; put it in quotes',
    ]);
  });

  it('keeps the locations of later pools when an earlier pool is removed', () => {
    const text = `${REGION_LINES}${IMAGE_LINES}pools:\n  - 3\n  - name: a\n    size: { cpu: 1, memory: 1Gi }\n    limits: { min: 3, max: 2 }\n`;
    expect(loadProblems(text)).toEqual([
      'c.yaml:8:5: error: pools[0]: expected a mapping, not a number',
      'c.yaml:11:20: error: pools[1].limits.min: min 3 is more than max 2',
    ]);
  });

  it('reports missing keys next to a refused key, but not the refused key itself', () => {
    const text =
      'proxmox:\n  lab: { token: 3 }\nimages:\n  a: { url: 3, checksumUrl: 4 }\n  b: { url: 3 }\n';
    expect(loadProblems(text).map((line) => line.replace('error: ', ''))).toEqual([
      "c.yaml:2:8: proxmox.lab: needs 'endpoints' with at least one URL, https://host:8006",
      'c.yaml:2:17: proxmox.lab.token: expected a mapping, not a number',
      'c.yaml:4:13: images.a.url: expected a URL, not a number; put it in quotes',
      'c.yaml:4:29: images.a.checksumUrl: expected a URL, not a number; put it in quotes',
      "c.yaml:5:6: images.b: needs 'checksumUrl' or 'checksum', or 'unverified: true' to accept the image without a checksum",
      'c.yaml:5:13: images.b.url: expected a URL, not a number; put it in quotes',
    ]);
  });

  const found = (text: string) =>
    loadText(text).problems.map(({ path, message }) => `${path}: ${message}`);
  const images = (text: string) => VALID.replace(IMAGE_LINES, text);

  it.each([
    'images: { jammy: { url: 3, unverified: true } }\n',
    'images: { jammy: 3 }\n',
    'images: 3\n',
    'templates: { t: 3 }\n',
    'templates: { t: { nam: x } }\n',
  ])('does not report a missing source when the source is defined but invalid: %s', (text) => {
    expect(found(images(text)).filter((line) => line.includes("'from'"))).toEqual([]);
    expect(found(images(text)).length).toBeGreaterThan(0);
  });

  it('requires a source when there are two, even if one of them is invalid', () => {
    const text = 'images: { a: { url: 3 }, b: { url: https://x/y, unverified: true } }\n';
    expect(found(images(text)).filter((line) => line.includes("'from'"))).toHaveLength(1);
  });

  it('counts a join recipe that is defined but invalid', () => {
    const text = `${VALID}    join: k3s
  - name: b
    size: { cpu: 1, memory: 1Gi }
join: { k3s: { server: 3 }, kubeadm: {} }
`;
    expect(found(text)).toEqual([
      "pools[1]: needs 'join', because there is more than one join recipe",
      'join.k3s.server: expected a URL, not a number; put it in quotes',
    ]);
    expect(found(`${VALID}    join: k3s\njoin: 3\n`)).toEqual([
      'join: expected a mapping, not a number',
    ]);
    expect(found(`${VALID}    join: k3s\njoin: { k3s: 3 }\n`)).toEqual([
      'join.k3s: expected a mapping, not a number',
    ]);
  });

  it('checks a reference next to an invalid key', () => {
    const text = `${VALID}    from: { template: t, clone: Linked }\n`;
    expect(found(text)).toEqual([
      "pools[0].from.template: template 't' is not defined; 'templates' is empty",
      "pools[0].from.clone: must be one of full, linked; did you mean 'linked'?",
    ]);
  });

  it.each([
    ['[{ cpu: 1, memory: 1Gi, dsk: 1 }, nope]', 'dsk: unknown key'],
    ['[{ cpu: 1, memory: 1gb }, nope]', 'memory: unknown suffix'],
    ['[{ cpu: 1 }, nope]', "key 'memory' is missing"],
    ['[3, nope]', 'expected the name of a size'],
  ])('checks a size next to an invalid one: %s', (size, first) => {
    const lines = found(pool(`    size: ${size}\n`));
    expect(lines[0]).toContain(first);
    expect(lines.slice(1)).toEqual([
      "pools[0].size[1]: size 'nope' is not defined; 'sizes' is empty",
    ]);
  });

  it('checks all VM options even if one of them has the wrong type', () => {
    const text = pool(`${SIZE}    vmOptions: { cpu: {}, args: -x, hookscript: "local:x.pl" }\n`);
    expect(found(text).map((line) => line.slice(0, 38))).toEqual([
      'pools[0].vmOptions.cpu: expected text,',
      'pools[0].vmOptions.args: is not allowe',
      'pools[0].vmOptions.hookscript: is not ',
    ]);
  });

  it('reports a duplicate pool name at its second location, also for an alias', () => {
    const text = VALID.replace('name: small', 'name: &n small');
    expect(loadProblems(`${text}  - name: *n\n${SIZE}`)).toEqual([
      "c.yaml:10:11: error: pools[1].name: pool 'small' is already defined",
    ]);
  });

  it('continues after an unknown YAML tag', () => {
    expect(loadProblems(`x: !foo 1\nlog: {}\nlog: {}\n${VALID}`)).toEqual([
      expect.stringMatching(/^c\.yaml:1:1: error: x: unknown key/),
      'c.yaml:1:4: error: unknown YAML tag (!name); remove it',
      "c.yaml:3:1: error: key 'log' is a duplicate; it first appears in line 2",
    ]);
  });

  it('does not compare a limit with a refused one', () => {
    expect(loadProblems(pool(`${SIZE}    limits: { min: 50, max: many }\n`))).toEqual([
      'c.yaml:10:29: error: pools[0].limits.max: expected a number, not text',
    ]);
  });
});

describe('the effective config', () => {
  it('contains every default as an integer with a unit', () => {
    const loaded = loadText(VALID);
    expect(loaded.ok).toBe(true);
    if (!loaded.ok) return;
    expect(loaded.config).toMatchObject({
      mode: 'standalone',
      intervals: { reconcileMs: 20_000, scanMs: 15_000 },
      grpc: { listen: { host: '', port: 50_051 }, tls: undefined },
      http: { dashboard: { host: '127.0.0.1', port: 8081 } },
      regions: {
        lab: {
          endpoints: ['https://pve1:8006'],
          login: {
            kind: 'token',
            id: 'scaler@pve!k8s',
            secret: { kind: 'file', path: '/etc/token' },
          },
          transport: { kind: 'rest' },
          vmIds: { from: 20_000, to: 29_999 },
          storage: { disks: ['local-lvm'] },
          taskTimeoutMs: 900_000,
        },
      },
    });
    expect(loaded.config.pools[0]).toMatchObject({
      regions: ['lab'],
      from: { kind: 'image', image: 'jammy' },
      join: 'none',
      size: { cpu: 2, memoryBytes: 4 * 1024 ** 3, diskBytes: 20 * 1024 ** 3 },
      sizes: {
        kind: 'choice',
        sizes: [{ cpu: 2, memoryBytes: 4 * 1024 ** 3, diskBytes: 20 * 1024 ** 3 }],
      },
      names: { prefix: 'small', suffix: 'id' },
      network: { v4: { kind: 'dhcp' }, v6: { kind: 'auto' }, dns: [] },
      capacity: { evictionThreshold: { memoryBytes: 100 * 1024 ** 2 } },
      provisionTimeoutMs: 900_000,
    });
  });

  it('checks the resolved path of the state file', () => {
    const text = `${VALID}state: { path: state.db }\n`;
    const messages = (path: string) =>
      loadText(undefined, { file: { path, text } }).problems.map(({ message }) => message);
    expect(messages('/tmp/x/c.yaml')).toEqual([
      expect.stringContaining('/tmp may be emptied at any time'),
    ]);
    expect(messages('/etc/pvescaler/c.yaml')).toEqual([]);
  });

  it('resolves paths relative to the home folder and the folder of the file', () => {
    const text = `${VALID.replace('/etc/token', '~/token')}state: { path: data/state.db }\n`;
    const loaded = loadText(undefined, { file: { path: '/etc/pvescaler/c.yaml', text } });
    expect(loaded.ok && loaded.config.state.path).toBe('/etc/pvescaler/data/state.db');
    expect(loaded.ok && loaded.config.regions['lab']?.login).toMatchObject({
      secret: { path: '/home/me/token' },
    });
  });

  it('reads static pools of both families', () => {
    const loaded = loadText(
      pool(
        `${SIZE}    limits: { max: 2 }\n    network: { ip: { v4: { pool: [10.0.0.5, 10.0.0.7-10.0.0.8], prefix: 24 }, v6: "off", dns: [10.0.0.1] } }\n`,
      ),
    );
    expect(renderedProblems(loaded)).toEqual([]);
    expect(loaded.ok && loaded.config.pools[0]?.network).toMatchObject({
      v4: {
        kind: 'static',
        prefix: 24,
        ranges: [
          { from: '10.0.0.5', to: '10.0.0.5' },
          { from: '10.0.0.7', to: '10.0.0.8' },
        ],
      },
      v6: { kind: 'off' },
      dns: ['10.0.0.1'],
    });
  });

  it('lists each configured key whose feature is planned once', () => {
    const loaded = loadText(`${VALID}log: { level: debug }\n`);
    const paths = loaded.ok ? loaded.planned.map(({ path }) => path) : [];
    expect(paths).not.toContain('log');
    expect(new Set(paths).size).toBe(paths.length);
  });

  const plannedIn = (text: string) => {
    const loaded = loadText(`${VALID}${text}`);
    return loaded.ok ? loaded.planned.map(({ path }) => path) : [];
  };

  it.each([
    ['mode: standalone\nautoscaler: { poolChoice: random }\n', []],
    ['mode: externalgrpc\ngrpc: { insecure: true }\n', []],
    ['http: { dashboard: off }\n', []],
    ['http: { dashboard: "off" }\n', []],
    ['intervals: { scan: 15s, reconcile: 10s }\n', []],
    ['templates: { base: { name: base, id: 9000 } }\n', []],
    ['ssh: { user: me, publicKeyFiles: [a.pub] }\n', []],
    [
      'mode: externalgrpc\ngrpc: { insecure: true }\nautoscaler: { poolChoice: random }\nintervals: { scan: 15s }\n',
      ['autoscaler', 'intervals.scan'],
    ],
    ['mode: standalone\ngrpc: { insecure: true }\n', ['grpc']],
  ])('reports of %j the keys without effect: %j', (text, expected) => {
    expect(plannedIn(text)).toEqual(expected);
  });
});
