// SPDX-License-Identifier: Apache-2.0
// Section `k3s` of ca-proxmox-externalgrpc: how machines join, and the one key of the guest's user.

import { type Context, SECRETS } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import type { Section, Where } from '../source/tree.ts';
import { pick } from './pick.ts';

const ROOT: DraftPath = ['join', 'k3s'];
const DEFAULT_VERSION = 'v1.34.4+k3s1';

export function mapK3s(context: Context, section: Section): void {
  mapServer(context, section);
  mapVersion(context, section);
  const token = pick(context, section, 'cluster_token') ?? section.where('cluster_token');
  context.work.secretFile([...ROOT, 'token', 'secretFile'], `${SECRETS}/k3s-token`, token);
  context.work.note(
    token,
    'carried-differently',
    'a static token must be an agent token here; `token: auto` makes a short-lived one for each machine and needs no file',
  );
  mapRegistries(context, section);
  mapPublicKey(context, section);
}

function mapServer(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'server_url');
  const url = read.text(tree);
  if (tree === undefined || url === undefined) {
    const message = 'the URL that machines join, https://host:6443';
    work.placeholder([...ROOT, 'server'], 'https://k3s.invalid:6443', {
      where: section.where('server_url'),
      message,
    });
    return;
  }
  work.carry([...ROOT, 'server'], url, tree);
  const port = URL.canParse(url) ? new URL(url).port : '6443';
  if (port !== '6443') {
    work.note(
      tree,
      'carried-differently',
      'machines there wait for port 6443 of that host whatever the URL says; here the port of the URL counts',
    );
  }
}

function mapVersion(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'version');
  const version = read.text(tree);
  if (tree === undefined || version === undefined) {
    work.carryDefault([...ROOT, 'version'], DEFAULT_VERSION, section.where('version'));
  } else work.carry([...ROOT, 'version'], version, tree);
}

// The text may hold passwords of registries: it is not copied either.
function mapRegistries({ work, read }: Context, section: Section): void {
  const path = [...ROOT, 'registriesFile'];
  const inline = section.find('registries_yaml');
  const file = section.find('registries_yaml_file');
  const hasText = inline !== undefined && (read.text(inline) ?? '') !== '';
  if (hasText) {
    const target = `${SECRETS}/registries.yaml`;
    work.carryOwn(path, target, `put the text of ${inline.path} into this file`);
    work.note(
      inline,
      'needs-you',
      `its text may hold passwords and is not copied: put it into ${target}`,
    );
  }
  if (file === undefined) return;
  const name = read.text(file) ?? '';
  if (hasText) work.note(file, 'ignored-by-them', 'is read only when registries_yaml is empty');
  else if (name !== '') carryFile({ work, path, name, where: file });
  else work.note(file, 'ignored-by-them', 'is empty');
}

interface FileToCarry {
  readonly work: Context['work'];
  readonly path: DraftPath;
  readonly name: string;
  readonly where: Where;
}

function carryFile({ work, path, name, where }: FileToCarry): void {
  work.carry(path, name, where);
  work.note(
    where,
    'carried-differently',
    'a missing file counts as empty there; here it is an error',
  );
}

function mapPublicKey(context: Context, section: Section): void {
  const { work, read } = context;
  work.carryFixed(['ssh', 'user'], 'ubuntu', "the guest's user has a fixed name");
  const tree = pick(context, section, 'ssh_public_key');
  const text = read.text(tree);
  if (tree !== undefined && text !== undefined) {
    work.carry(['ssh', 'publicKeys'], [text], tree);
    return;
  }
  work.note(
    section.where('ssh_public_key'),
    'needs-you',
    'is required there and absent: nobody can log in to new machines before ssh.publicKeys has a key',
  );
}
