// SPDX-License-Identifier: Apache-2.0
// How a new VM joins the cluster: one recipe per kind of cluster. A pool names the recipe that it uses.
import * as z from 'zod';
import { refused } from '../../model/parsed.ts';
import { url } from './address-leaves.ts';
import { duration } from './amount-leaves.ts';
import { key } from './key.ts';
import { textLeaf } from './leaf.ts';
import { checkPattern, filePath, guestPath, nonEmptyText, octalMode } from './name-leaves.ts';
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

const TOKEN_TTL_DESCRIPTION =
  "Longest lifetime of a token created for one machine; not longer than twice the pool's `provisionTimeout`. A token is deleted when its machine is ready or gone.";
const TOKEN_DESCRIPTION =
  'Join token: `auto` creates one bootstrap token per machine through the Kubernetes API; alternatively a static agent token.';

const fileSchema = z.strictObject({
  path: key(guestPath(), 'Path of the file in the guest.'),
  content: key(
    z.string().optional(),
    'Content of the file. Do not put secrets here: the config file is not a safe place for them.',
  ),
  contentFile: key(filePath().optional(), 'Local file whose content is used.'),
  permissions: key(octalMode().prefault('0644'), 'File mode.'),
});

/**
 * An argument of the agent. A token is refused, because it would be visible in the file, in the seed and in the
 * process list; `token` is the key for it.
 */
function agentArgument() {
  return textLeaf({ type: 'text', json: { type: 'string', minLength: 1 } }, (value) =>
    /^(-t|-{0,2}([\w-]+-)?(token|cluster-secret))([=\s]|$)/i.test(value.trim())
      ? refused("passes a token; set the join token with the key 'token' instead")
      : checkPattern(value, /\S/, 'is empty'),
  );
}

/** Keys of every recipe. */
const guestKeys = {
  packages: key(
    z.array(nonEmptyText()).prefault([]),
    'Packages that cloud-init installs before the join.',
  ),
  files: key(z.array(fileSchema).prefault([]), 'Files that cloud-init writes before the join.'),
  cloudConfigFile: key(
    filePath().optional(),
    'Additional cloud-config file, merged with the generated one. A machine is refused when the two conflict.',
  ),
  proxy: key(
    z
      .strictObject({
        http: key(url().optional(), 'Proxy for HTTP.'),
        https: key(url().optional(), 'Proxy for HTTPS.'),
        none: key(
          z.array(nonEmptyText()).prefault([]),
          'Hosts, domains and networks that bypass the proxy.',
        ),
      })
      .optional(),
    'Proxy that the guest uses.',
  ),
};

const nodeAgentKeys = {
  install: key(
    z.enum(['binary', 'script', 'none']).prefault('binary'),
    'How to install the agent: a pinned binary with a verified checksum, the vendor’s install script, or not at all because the image contains it.',
  ),
  sha256: key(
    textLeaf(
      { type: 'SHA-256 in hex', json: { type: 'string', pattern: '^[0-9a-fA-F]{64}$' } },
      (value) =>
        checkPattern(value, /^[0-9a-f]{64}$/i, 'must be a SHA-256 checksum: 64 hex digits'),
    ).optional(),
    'Expected checksum of the binary. Protects against a download server that replaces both the binary and its checksum list.',
    { defaultText: 'the checksum published with the release' },
  ),
  downloadUrl: key(url().optional(), 'URL of a download mirror.', {
    defaultText: 'the vendor’s download server',
  }),
  registriesFile: key(
    filePath().optional(),
    'Registry settings (`registries.yaml`) for the guest.',
    {
      replaces: { externalgrpc: ['k3s.registries_yaml', 'k3s.registries_yaml_file'] },
    },
  ),
  agentArgs: key(
    z.array(agentArgument()).prefault([]),
    'Additional arguments of the agent. Arguments that pass a token are refused: use `token`. `--log` is refused too: with it the agent is ready before it has joined.',
  ),
};

function versionText(form: RegExp, example: string) {
  return textLeaf({ type: 'version', json: { type: 'string', pattern: form.source } }, (value) =>
    checkPattern(value, form, `must be a version such as '${example}'`),
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
  tokenTtl: key(duration({ min: '5m', max: '1h' }).prefault('1h'), TOKEN_TTL_DESCRIPTION),
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
  tokenTtl: key(duration({ min: '5m', max: '1h' }).prefault('1h'), TOKEN_TTL_DESCRIPTION),
  ...nodeAgentKeys,
  ...guestKeys,
});

const via = key(
  z.enum(['cloud-init', 'agent']).prefault('cloud-init'),
  'Run the join from cloud-init user data at first boot, or through the guest agent once the system runs.',
);

const kubeadmSchema = z.strictObject({
  via,
  server: key(url().optional(), 'URL of the API server that machines join.', {
    defaultText: 'the server of the kubeconfig',
  }),
  token: key(tokenSchema, TOKEN_DESCRIPTION),
  tokenTtl: key(duration({ min: '5m', max: '1h' }).prefault('1h'), TOKEN_TTL_DESCRIPTION),
  caCertHashes: key(
    z
      .array(
        textLeaf(
          { type: 'CA hash', json: { type: 'string', pattern: '^sha256:[0-9a-f]{64}$' } },
          (value) =>
            checkPattern(
              value,
              /^sha256:[0-9a-f]{64}$/,
              "must be 'sha256:' followed by 64 hex digits",
            ),
        ),
      )
      .prefault([]),
    'Hashes of the cluster CA certificate.',
    { defaultText: 'computed from the CA of the kubeconfig' },
  ),
  kubeletArgs: key(
    z.array(agentArgument()).prefault([]),
    'Additional kubelet arguments, `name=value`. Arguments that pass a token are refused: use `token`.',
  ),
  ...guestKeys,
});

const customSchema = z.strictObject({
  via,
  scriptFile: key(
    filePath().optional(),
    'Script that joins the machine to the cluster; token and names are passed as environment variables.',
  ),
  token: key(tokenSchema, TOKEN_DESCRIPTION),
  tokenTtl: key(duration({ min: '5m', max: '1h' }).prefault('1h'), TOKEN_TTL_DESCRIPTION),
  ...guestKeys,
});

export const joinSchema = z
  .strictObject({
    k3s: key(k3sSchema.optional(), 'Agents of a k3s cluster.'),
    rke2: key(rke2Schema.optional(), 'Agents of an RKE2 cluster.'),
    kubeadm: key(kubeadmSchema.optional(), 'Workers of a kubeadm cluster.'),
    custom: key(customSchema.optional(), 'Other clusters: a custom script or cloud-config.'),
  })
  .prefault({});

export const JOIN_KINDS = ['k3s', 'rke2', 'kubeadm', 'custom'] as const;
