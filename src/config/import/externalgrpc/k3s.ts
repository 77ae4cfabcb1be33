// SPDX-License-Identifier: Apache-2.0
// Section `k3s` of ca-proxmox-externalgrpc: how machines join, and the one key of the guest's user.

import { type ImportContext, SECRETS_FOLDER } from '../context.ts';
import type { DraftPath } from '../output/draft.ts';
import type { SourceRef, SourceSection } from '../source/tree.ts';
import { findEffectiveValue } from './effective-value.ts';

const ROOT: DraftPath = ['join', 'k3s'];
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
    'carried-differently',
    'a static token must be an agent token here; `token: auto` makes a short-lived one for each machine and needs no file',
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
      'carried-differently',
      'machines there wait for port 6443 of that host whatever the URL says; here the port of the URL counts',
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

// The text may hold passwords of registries: it is not copied either.
function mapRegistries({ writer, reader }: ImportContext, section: SourceSection): void {
  const path = [...ROOT, 'registriesFile'];
  const inline = section.find('registries_yaml');
  const file = section.find('registries_yaml_file');
  const hasText = inline !== undefined && (reader.readText(inline) ?? '') !== '';
  if (hasText) {
    const target = `${SECRETS_FOLDER}/registries.yaml`;
    writer.setOwn(path, target, `put the text of ${inline.path} into this file`);
    writer.note(
      inline,
      'needs-you',
      `its text may hold passwords and is not copied: put it into ${target}`,
    );
  }
  if (file === undefined) return;
  const name = reader.readText(file) ?? '';
  if (hasText) writer.note(file, 'ignored-by-them', 'is read only when registries_yaml is empty');
  else if (name !== '') setRegistriesFile({ writer, path, name, where: file });
  else writer.note(file, 'ignored-by-them', 'is empty');
}

interface RegistriesFile {
  readonly writer: ImportContext['writer'];
  readonly path: DraftPath;
  readonly name: string;
  readonly where: SourceRef;
}

function setRegistriesFile({ writer, path, name, where }: RegistriesFile): void {
  writer.set(path, name, where);
  writer.note(
    where,
    'carried-differently',
    'a missing file counts as empty there; here it is an error',
  );
}

function mapPublicKey(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  writer.setFixedBehavior(['ssh', 'user'], 'ubuntu', "the guest's user has a fixed name");
  const tree = findEffectiveValue(context, section, 'ssh_public_key');
  const text = reader.readText(tree);
  if (tree !== undefined && text !== undefined) {
    writer.set(['ssh', 'publicKeys'], [text], tree);
    return;
  }
  writer.note(
    section.refTo('ssh_public_key'),
    'needs-you',
    'is required there and absent: nobody can log in to new machines before ssh.publicKeys has a key',
  );
}
