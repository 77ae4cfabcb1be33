// SPDX-License-Identifier: Apache-2.0
// Section `k3s` of ca-proxmox-externalgrpc: how machines join, and the SSH key of the guest user.

import type { ConfigPath } from '../../config-path.ts';
import { type ImportContext, SECRETS_FOLDER } from '../context.ts';
import type { SourceRef, SourceSection } from '../source/tree.ts';
import { findEffectiveValue } from './effective-value.ts';

const ROOT: ConfigPath = ['join', 'k3s'];
const DEFAULT_VERSION = 'v1.34.4+k3s1';

export function mapK3s(context: ImportContext, section: SourceSection): void {
  mapServer(context, section);
  mapVersion(context, section);
  const token =
    findEffectiveValue(context, section, 'cluster_token') ?? section.refTo('cluster_token');
  context.writer.setSecretFile(
    [...ROOT, 'token', 'secretFile'],
    `${SECRETS_FOLDER}/k3s-token`,
    token,
  );
  context.writer.note(
    token,
    'imported-differently',
    'a static token must be an agent token; `token: auto` creates a short-lived token for each machine and needs no file',
  );
  mapRegistries(context, section);
  mapPublicKey(context, section);
}

function mapServer(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'server_url');
  const url = reader.readText(tree);
  if (tree === undefined || url === undefined) {
    const message = 'the URL that machines join, https://host:6443';
    writer.setPlaceholder([...ROOT, 'server'], 'https://k3s.invalid:6443', {
      where: section.refTo('server_url'),
      message,
    });
    return;
  }
  writer.set([...ROOT, 'server'], url, tree);
  const port = URL.canParse(url) ? new URL(url).port : '6443';
  if (port !== '6443') {
    writer.note(
      tree,
      'imported-differently',
      'in the source system machines always wait for port 6443 of that host; pvescaler uses the port of the URL',
    );
  }
}

function mapVersion(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'version');
  const version = reader.readText(tree);
  if (tree === undefined || version === undefined) {
    writer.setSourceDefault([...ROOT, 'version'], DEFAULT_VERSION, section.refTo('version'));
  } else writer.set([...ROOT, 'version'], version, tree);
}

// The text may contain registry passwords, so it is not copied either.
function mapRegistries({ writer, reader }: ImportContext, section: SourceSection): void {
  const path = [...ROOT, 'registriesFile'];
  const inline = section.find('registries_yaml');
  const file = section.find('registries_yaml_file');
  const hasText = inline !== undefined && (reader.readText(inline) ?? '') !== '';
  if (hasText) {
    const target = `${SECRETS_FOLDER}/registries.yaml`;
    writer.setOwn(path, target, `copy the text of ${inline.path} into this file`);
    writer.note(
      inline,
      'action-required',
      `the text may contain passwords and is not copied; put it into ${target}`,
    );
  }
  if (file === undefined) return;
  const name = reader.readText(file) ?? '';
  if (hasText) writer.note(file, 'ignored-by-source', 'is only read when registries_yaml is empty');
  else if (name !== '') setRegistriesFile({ writer, path, name, where: file });
  else writer.note(file, 'ignored-by-source', 'is empty');
}

interface RegistriesFile {
  readonly writer: ImportContext['writer'];
  readonly path: ConfigPath;
  readonly name: string;
  readonly where: SourceRef;
}

function setRegistriesFile({ writer, path, name, where }: RegistriesFile): void {
  writer.set(path, name, where);
  writer.note(
    where,
    'imported-differently',
    'the source system treats a missing file as empty; pvescaler reports an error',
  );
}

function mapPublicKey(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  writer.setFixedBehavior(['ssh', 'user'], 'ubuntu', 'the guest user has a fixed name');
  const tree = findEffectiveValue(context, section, 'ssh_public_key');
  const text = reader.readText(tree);
  if (tree !== undefined && text !== undefined) {
    writer.set(['ssh', 'publicKeys'], [text], tree);
    return;
  }
  writer.note(
    section.refTo('ssh_public_key'),
    'action-required',
    'is required in the source system but missing; add a key to ssh.publicKeys to be able to log in to new machines',
  );
}
