// SPDX-License-Identifier: Apache-2.0
// The value that the source system uses: a variable that is set and not blank, then the file, then the
// default. The source system reads a text key without a value (null) as the text `None`; in pvescaler it is
// treated as absent.

import type { ImportContext } from '../context.ts';
import { isNull } from '../source/reader.ts';
import { childPath, type ScalarTree, type SourceSection, type SourceTree } from '../source/tree.ts';

/** Keys of the file and the variables that override them. */
export const OVERRIDING_VARIABLES: ReadonlyMap<string, string> = new Map([
  ['proxmox.api_url', 'PM_API_URL'],
  ['proxmox.node', 'PM_NODE'],
  ['proxmox.token_id', 'PM_SERVICE_TOKEN_ID'],
  ['proxmox.token_secret', 'PM_SERVICE_TOKEN_SECRET'],
  ['proxmox.tls_insecure', 'PM_TLS_INSECURE'],
  ['proxmox.verify_certificates', 'PM_VERIFY_CERTIFICATES'],
  ['proxmox.import_storage', 'IMPORT_STORAGE'],
  ['proxmox.iso_storage', 'ISO_STORAGE'],
  ['proxmox.vm_storage', 'VM_STORAGE'],
  ['proxmox.bridge', 'BRIDGE'],
  ['proxmox.cloud_image_url', 'CLOUD_IMAGE_URL'],
  ['k3s.version', 'K3S_VERSION'],
  ['k3s.server_url', 'K3S_SERVER_URL'],
  ['k3s.cluster_token', 'K3S_CLUSTER_TOKEN'],
  ['k3s.ssh_public_key', 'SSH_PUBLIC_KEY'],
]);

export function findEffectiveValue(
  context: ImportContext,
  section: SourceSection,
  key: string,
): SourceTree | undefined {
  const inFile = section.find(key);
  const variable = OVERRIDING_VARIABLES.get(childPath(section.path, key));
  const value = variable === undefined ? undefined : findVariable(context, variable);
  if (value === undefined)
    return inFile === undefined ? undefined : treatNullAsAbsent(context, inFile);
  if (inFile !== undefined) {
    context.writer.note(
      inFile,
      'ignored-by-source',
      `is overridden by ${variable} in the environment`,
    );
  }
  return value;
}

export function findVariable(context: ImportContext, variable: string): ScalarTree | undefined {
  const value = context.environment[variable]?.trim();
  if (value === undefined || value === '') return undefined;
  return { kind: 'scalar', path: `${variable} (environment)`, value };
}

function treatNullAsAbsent({ writer }: ImportContext, tree: SourceTree): SourceTree | undefined {
  if (!isNull(tree)) return tree;
  writer.note(
    tree,
    'imported-differently',
    "has no value; the source system reads the text 'None' (or fails for a number or a section), here the key is treated as absent",
  );
  return undefined;
}
