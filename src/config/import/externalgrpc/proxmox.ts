// SPDX-License-Identifier: Apache-2.0
// Sections `proxmox` and `defaults` of ca-proxmox-externalgrpc: one region with one host, and one image.

import type { ConfigPath } from '../../config-path.ts';
import { type ImportContext, SECRETS_FOLDER } from '../context.ts';
import { placeholderEndpoints } from '../output/required.ts';
import type { SourceSection } from '../source/tree.ts';
import { findEffectiveValue } from './effective-value.ts';

export const REGION = 'pve';
export const IMAGE = 'cloud';
const ROOT: ConfigPath = ['proxmox', REGION];

export function mapProxmox(context: ImportContext, section: SourceSection): void {
  mapEndpoint(context, section);
  mapNode(context, section);
  mapToken(context, section);
  mapTls(context, section);
  mapStorages(context, section);
}

function mapEndpoint(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'api_url');
  const url = reader.readText(tree);
  const path = [...ROOT, 'endpoints'];
  if (tree === undefined || url === undefined) {
    const message = 'the URL of the Proxmox API';
    writer.setPlaceholder(path, placeholderEndpoints(REGION), {
      where: section.refTo('api_url'),
      message,
    });
    return;
  }
  writer.set(path, [stripApiPath(url)], tree);
}

/** The base URL without the API path, which both systems add themselves. */
export function stripApiPath(url: string): string {
  return url
    .replace(/\/+$/, '')
    .replace(/\/api2\/json$/, '')
    .replace(/\/+$/, '');
}

function mapNode(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'node');
  const name = reader.readText(tree);
  if (tree !== undefined && name !== undefined) {
    writer.set([...ROOT, 'hosts', 'allow'], [name], tree);
    return;
  }
  writer.note(
    section.refTo('node'),
    'action-required',
    'is required in the source system but missing; set hosts.allow, otherwise every host may be used',
  );
}

function mapToken(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'token_id');
  const id = reader.readText(tree);
  const path = [...ROOT, 'token', 'id'];
  if (tree === undefined || id === undefined) {
    const message = 'the id of the API token, user@realm!name';
    writer.setPlaceholder(path, 'pvescaler@pve!pvescaler', {
      where: section.refTo('token_id'),
      message,
    });
  } else writer.set(path, id, tree);
  const secret =
    findEffectiveValue(context, section, 'token_secret') ?? section.refTo('token_secret');
  writer.setSecretFile([...ROOT, 'token', 'secretFile'], `${SECRETS_FOLDER}/proxmox-token`, secret);
}

function mapTls(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'tls_insecure');
  const insecure = reader.readBoolean(tree);
  const path = [...ROOT, 'tls', 'insecure'];
  if (tree === undefined || insecure === undefined) {
    writer.setSourceDefault(path, true, section.refTo('tls_insecure'));
  } else writer.set(path, insecure, tree);
  if (insecure === false) return;
  writer.note(
    tree ?? section.refTo('tls_insecure'),
    'imported-differently',
    'the certificate of the Proxmox API is still not verified, which causes a warning; set tls.caFile or tls.fingerprints instead',
  );
}

const STORAGES = [
  { key: 'import_storage', targetKey: 'images', fallback: 'local' },
  { key: 'iso_storage', targetKey: 'seeds', fallback: 'local' },
  { key: 'vm_storage', targetKey: 'disks', fallback: 'local-lvm' },
] as const;

function mapStorages(context: ImportContext, section: SourceSection): void {
  for (const { key, targetKey, fallback } of STORAGES) {
    const tree = findEffectiveValue(context, section, key);
    const storage = context.reader.readText(tree);
    const path = [...ROOT, 'storage', targetKey];
    if (tree === undefined || storage === undefined) {
      context.writer.setSourceDefault(path, fallback, section.refTo(key));
    } else context.writer.set(path, storage, tree);
  }
}

export function mapImage(context: ImportContext, section: SourceSection): void {
  const { writer, reader } = context;
  const tree = findEffectiveValue(context, section, 'cloud_image_url');
  const url = reader.readText(tree);
  const where = tree ?? section.refTo('cloud_image_url');
  if (url === undefined) {
    const message = 'the URL of the cloud image';
    writer.setPlaceholder(['images', IMAGE, 'url'], 'https://images.invalid/cloud.img', {
      where,
      message,
    });
  } else writer.set(['images', IMAGE, 'url'], url, where);
  writer.setFixedBehavior(['images', IMAGE, 'unverified'], true, 'never verifies the image');
  writer.note(
    where,
    'imported-differently',
    'the source system does not verify images; replace `unverified` with checksum or checksumUrl to verify them',
  );
  mapDownloadCertificate(context, section);
}

function mapDownloadCertificate(
  { writer, reader, environment }: ImportContext,
  section: SourceSection,
): void {
  const tree = findEffectiveValue({ writer, reader, environment }, section, 'verify_certificates');
  const verified = reader.readBoolean(tree);
  const path = ['images', IMAGE, 'verifyCertificates'];
  if (tree === undefined || verified === undefined) {
    writer.setSourceDefault(path, false, section.refTo('verify_certificates'));
  } else writer.set(path, verified, tree);
  writer.note(
    tree ?? section.refTo('verify_certificates'),
    'imported-differently',
    'applies to the download server of the image, not to the Proxmox API, although its documentation lists it next to the TLS option of the API',
  );
}

/** Despite its name, vm_tag_prefix is a complete tag. */
export function mapDefaults({ writer, reader }: ImportContext, section: SourceSection): void {
  const tree = section.find('vm_tag_prefix');
  const tag = reader.readText(tree);
  const path = [...ROOT, 'tags'];
  const where = tree ?? section.refTo('vm_tag_prefix');
  if (tree === undefined || tag === undefined) {
    writer.setSourceDefault(path, ['proxmox_test2', 'ca-managed'], where);
    return;
  }
  writer.set(path, [tag.toLowerCase(), 'ca-managed'], where);
  if (tag !== tag.toLowerCase()) {
    writer.note(
      where,
      'imported-differently',
      'the tag was converted to lower case, as Proxmox stores it',
    );
  }
}
