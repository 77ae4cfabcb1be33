// SPDX-License-Identifier: Apache-2.0
// How a new VM becomes a node: one recipe per kind of cluster. A pool names the recipe it uses.
import * as z from 'zod';
import { refused } from '../../model/parsed.ts';
import { url } from './address-leaves.ts';
import { duration } from './amount-leaves.ts';
import { key } from './key.ts';
import { textLeaf } from './leaf.ts';
import { checkPattern, filePath, nonEmptyText } from './name-leaves.ts';
import { secretSourceKeys } from './secret-keys.ts';

const agentToken = secretSourceKeys('an agent token', 'token');

const tokenSchema = z
  .union([
    z.literal('auto'),
    z.strictObject({
      secretFile: agentToken.file,
      secretEnv: agentToken.env,
      secretRef: agentToken.ref,
    }),
  ])
  .prefault('auto')
  .meta({ 'x-forms': '`auto`, or a mapping with secretFile, secretEnv or secretRef' });

const TOKEN_DESCRIPTION =
  'How machines prove that they may join: `auto` makes a bootstrap token per machine through the Kubernetes API; or a static agent token.';

const fileSchema = z.strictObject({
  path: key(
    textLeaf({ type: 'absolute path', json: { type: 'string', pattern: '^/' } }, (value) =>
      checkPattern(value, /^\/[^\0\n]+$/, 'is not an absolute path in the guest'),
    ),
    'Where the file goes in the guest.',
  ),
  content: key(
    z.string().optional(),
    'Its content. Not for secrets: the file you read is no safe place.',
  ),
  contentFile: key(filePath().optional(), 'File here whose content it gets.'),
  permissions: key(
    textLeaf({ type: 'octal mode', json: { type: 'string', pattern: '^0?[0-7]{3,4}$' } }, (value) =>
      checkPattern(value, /^0?[0-7]{3,4}$/, "is not an octal mode in quotes, such as '0644'"),
    ).prefault('0644'),
    'Its mode.',
  ),
});

/**
 * An argument of the agent. A token among them would stand in the file, in the seed and in the process list:
 * refused, since it has a key of its own.
 */
function agentArgument() {
  return textLeaf({ type: 'text', json: { type: 'string', minLength: 1 } }, (value) =>
    /^(-t|-{0,2}([\w-]+-)?(token|cluster-secret))([=\s]|$)/i.test(value.trim())
      ? refused("hands over a token; the join token has a key of its own, 'token'")
      : checkPattern(value, /\S/, 'is empty'),
  );
}

/** What every recipe has. */
const guestKeys = {
  packages: key(z.array(nonEmptyText()).prefault([]), 'Packages that cloud-init installs first.'),
  files: key(z.array(fileSchema).prefault([]), 'Files that are written first.'),
  cloudConfigFile: key(
    filePath().optional(),
    'Your own cloud-config, merged with ours. Where both say something different, the machine is refused.',
  ),
  proxy: key(
    z
      .strictObject({
        http: key(url().optional(), 'Proxy for http.'),
        https: key(url().optional(), 'Proxy for https.'),
        none: key(
          z.array(nonEmptyText()).prefault([]),
          'Hosts, domains and networks reached without it.',
        ),
      })
      .optional(),
    'Proxy that the guest uses.',
  ),
};

const nodeAgentKeys = {
  install: key(
    z.enum(['binary', 'script', 'none']).prefault('binary'),
    'A pinned binary with verified checksum, the vendor’s script, or nothing since the image has it.',
  ),
  sha256: key(
    textLeaf(
      { type: 'SHA-256 in hex', json: { type: 'string', pattern: '^[0-9a-fA-F]{64}$' } },
      (value) => checkPattern(value, /^[0-9a-f]{64}$/i, 'is not a SHA-256 sum: 64 hex digits'),
    ).optional(),
    'Checksum of the binary, so that nobody can exchange it together with its list of checksums.',
    { defaultText: 'the one that the release publishes' },
  ),
  downloadUrl: key(url().optional(), 'Mirror to download from.', { defaultText: 'the vendor’s' }),
  registriesFile: key(
    filePath().optional(),
    'Registry settings (`registries.yaml`) for the guest.',
    {
      replaces: { externalgrpc: ['k3s.registries_yaml', 'k3s.registries_yaml_file'] },
    },
  ),
  agentArgs: key(
    z.array(agentArgument()).prefault([]),
    'Further arguments of the agent. A token is refused: `token` is its key.',
  ),
};

function versionText(form: RegExp, example: string) {
  return textLeaf({ type: 'version', json: { type: 'string', pattern: form.source } }, (value) =>
    checkPattern(value, form, `is not a version such as '${example}'`),
  );
}

const k3sSchema = z.strictObject({
  server: key(url(), 'URL of the k3s server, `https://host:6443`.', {
    replaces: { externalgrpc: 'k3s.server_url' },
  }),
  version: key(
    versionText(/^v\d+\.\d+\.\d+(-[\w.]+)?\+k3s\d+$/, 'v1.34.4+k3s1').prefault('v1.34.4+k3s1'),
    'Release of k3s.',
    {
      replaces: { externalgrpc: 'k3s.version' },
    },
  ),
  token: key(tokenSchema, TOKEN_DESCRIPTION, { replaces: { externalgrpc: 'k3s.cluster_token' } }),
  tokenTtl: key(
    duration({ min: '5m', max: '1h' }).prefault('1h'),
    'How long a token made for one machine is valid.',
  ),
  ...nodeAgentKeys,
  ...guestKeys,
});

const rke2Schema = z.strictObject({
  server: key(url(), 'URL of the RKE2 supervisor, `https://host:9345`.'),
  version: key(
    versionText(/^v\d+\.\d+\.\d+(-[\w.]+)?\+rke2r\d+$/, 'v1.34.4+rke2r1').prefault(
      'v1.34.4+rke2r1',
    ),
    'Release of RKE2.',
  ),
  token: key(tokenSchema, TOKEN_DESCRIPTION),
  tokenTtl: key(
    duration({ min: '5m', max: '1h' }).prefault('1h'),
    'How long a token made for one machine is valid.',
  ),
  ...nodeAgentKeys,
  ...guestKeys,
});

const via = key(
  z.enum(['cloud-init', 'agent']).prefault('cloud-init'),
  'From user-data at first boot, or by guest-agent exec once the system runs.',
);

const kubeadmSchema = z.strictObject({
  via,
  server: key(url().optional(), 'URL of the API server that machines join.', {
    defaultText: 'the kubeconfig’s server',
  }),
  token: key(tokenSchema, TOKEN_DESCRIPTION),
  tokenTtl: key(
    duration({ min: '5m', max: '1h' }).prefault('1h'),
    'How long a token made for one machine is valid.',
  ),
  caCertHashes: key(
    z
      .array(
        textLeaf(
          { type: 'CA hash', json: { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' } },
          (value) =>
            checkPattern(
              value,
              /^sha256:[0-9a-f]{64}$/,
              "is not of the form 'sha256:' and 64 hex digits",
            ),
        ),
      )
      .prefault([]),
    'Hashes of the cluster’s CA.',
    { defaultText: 'from the kubeconfig’s CA' },
  ),
  kubeletArgs: key(
    z.array(agentArgument()).prefault([]),
    'Further arguments of the kubelet, `name=value`. A token is refused: `token` is its key.',
  ),
  ...guestKeys,
});

const customSchema = z.strictObject({
  via,
  scriptFile: key(
    filePath().optional(),
    'Script that joins the machine; it finds the token and the names in its environment.',
  ),
  token: key(tokenSchema, TOKEN_DESCRIPTION),
  tokenTtl: key(
    duration({ min: '5m', max: '1h' }).prefault('1h'),
    'How long a token made for one machine is valid.',
  ),
  ...guestKeys,
});

export const joinSchema = z
  .strictObject({
    k3s: key(k3sSchema.optional(), 'Agents of a k3s cluster.'),
    rke2: key(rke2Schema.optional(), 'Agents of an RKE2 cluster.'),
    kubeadm: key(kubeadmSchema.optional(), 'Workers of a cluster made by kubeadm.'),
    custom: key(customSchema.optional(), 'Anything else: your own script or cloud-config.'),
  })
  .prefault({});

export const JOIN_KINDS = ['k3s', 'rke2', 'kubeadm', 'custom'] as const;
export type JoinKind = (typeof JOIN_KINDS)[number];
