// SPDX-License-Identifier: Apache-2.0
// Section `proxmox` and `defaults` of ca-proxmox-externalgrpc: one region with one host, and one image.

import { type Context, SECRETS } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { placeholderEndpoints } from '../ours/required.ts';
import type { Section } from '../source/tree.ts';
import { pick } from './pick.ts';

export const REGION = 'pve';
export const IMAGE = 'cloud';
const ROOT: DraftPath = ['proxmox', REGION];

export function mapProxmox(context: Context, section: Section): void {
  mapEndpoint(context, section);
  mapNode(context, section);
  mapToken(context, section);
  mapTls(context, section);
  mapStorages(context, section);
}

function mapEndpoint(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'api_url');
  const url = read.text(tree);
  const path = [...ROOT, 'endpoints'];
  if (tree === undefined || url === undefined) {
    const message = 'the address of the Proxmox API';
    work.placeholder(path, placeholderEndpoints(REGION), {
      where: section.where('api_url'),
      message,
    });
    return;
  }
  work.carry(path, [apiRoot(url)], tree);
}

/** The base URL without what both systems add themselves. */
export function apiRoot(url: string): string {
  return url
    .replace(/\/+$/, '')
    .replace(/\/api2\/json$/, '')
    .replace(/\/+$/, '');
}

function mapNode(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'node');
  const name = read.text(tree);
  if (tree !== undefined && name !== undefined) {
    work.carry([...ROOT, 'hosts', 'allow'], [name], tree);
    return;
  }
  work.note(
    section.where('node'),
    'needs-you',
    'is required there and absent: every host may be used until hosts.allow says otherwise',
  );
}

function mapToken(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'token_id');
  const id = read.text(tree);
  const path = [...ROOT, 'token', 'id'];
  if (tree === undefined || id === undefined) {
    const message = 'the id of the API token, user@realm!name';
    work.placeholder(path, 'pvescaler@pve!pvescaler', {
      where: section.where('token_id'),
      message,
    });
  } else work.carry(path, id, tree);
  const secret = pick(context, section, 'token_secret') ?? section.where('token_secret');
  work.secretFile([...ROOT, 'token', 'secretFile'], `${SECRETS}/proxmox-token`, secret);
}

function mapTls(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'tls_insecure');
  const insecure = read.flag(tree);
  const path = [...ROOT, 'tls', 'insecure'];
  if (tree === undefined || insecure === undefined) {
    work.carryDefault(path, true, section.where('tls_insecure'));
  } else work.carry(path, insecure, tree);
  if (insecure === false) return;
  work.note(
    tree ?? section.where('tls_insecure'),
    'carried-differently',
    'the certificate of the Proxmox API is not verified, as before, which is warned about here: give tls.caFile or tls.fingerprints instead',
  );
}

const STORAGES = [
  { key: 'import_storage', ours: 'images', otherwise: 'local' },
  { key: 'iso_storage', ours: 'seeds', otherwise: 'local' },
  { key: 'vm_storage', ours: 'disks', otherwise: 'local-lvm' },
] as const;

function mapStorages(context: Context, section: Section): void {
  for (const { key, ours, otherwise } of STORAGES) {
    const tree = pick(context, section, key);
    const storage = context.read.text(tree);
    const path = [...ROOT, 'storage', ours];
    if (tree === undefined || storage === undefined) {
      context.work.carryDefault(path, otherwise, section.where(key));
    } else context.work.carry(path, storage, tree);
  }
}

export function mapImage(context: Context, section: Section): void {
  const { work, read } = context;
  const tree = pick(context, section, 'cloud_image_url');
  const url = read.text(tree);
  const where = tree ?? section.where('cloud_image_url');
  if (url === undefined) {
    const message = 'the URL of the cloud image';
    work.placeholder(['images', IMAGE, 'url'], 'https://images.invalid/cloud.img', {
      where,
      message,
    });
  } else work.carry(['images', IMAGE, 'url'], url, where);
  work.carryFixed(['images', IMAGE, 'unverified'], true, 'never checks the image');
  work.note(
    where,
    'carried-differently',
    'images are not checked there, nor here until you replace `unverified` by checksum or checksumUrl',
  );
  mapDownloadCertificate(context, section);
}

function mapDownloadCertificate({ work, read, environment }: Context, section: Section): void {
  const tree = pick({ work, read, environment }, section, 'verify_certificates');
  const verified = read.flag(tree);
  const path = ['images', IMAGE, 'verifyCertificates'];
  if (tree === undefined || verified === undefined) {
    work.carryDefault(path, false, section.where('verify_certificates'));
  } else work.carry(path, verified, tree);
  work.note(
    tree ?? section.where('verify_certificates'),
    'carried-differently',
    "is about the server the image comes from, not about the Proxmox API, although its documentation lists it next to the API's TLS switch",
  );
}

/** A whole tag, despite its name. */
export function mapDefaults({ work, read }: Context, section: Section): void {
  const tree = section.find('vm_tag_prefix');
  const tag = read.text(tree);
  const path = [...ROOT, 'tags'];
  const where = tree ?? section.where('vm_tag_prefix');
  if (tree === undefined || tag === undefined) {
    work.carryDefault(path, ['proxmox_test2', 'ca-managed'], where);
    return;
  }
  work.carry(path, [tag.toLowerCase(), 'ca-managed'], where);
  if (tag !== tag.toLowerCase()) {
    work.note(where, 'carried-differently', 'Proxmox writes tags in lower case, so our file does');
  }
}
