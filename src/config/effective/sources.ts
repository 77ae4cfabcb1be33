// SPDX-License-Identifier: Apache-2.0
import type { ImageFile, SizeFile, TemplateFile } from '../schema/index.ts';
import { toBytes } from './convert.ts';

export function buildImage(name: string, image: ImageFile) {
  return {
    name,
    url: image.url,
    checksumUrl: image.checksumUrl,
    checksum: image.checksum === undefined ? undefined : parseChecksum(image.checksum),
    unverified: image.unverified,
    verifyCertificates: image.verifyCertificates,
    format: image.format ?? detectImageFormat(image.url),
  };
}

function parseChecksum(text: string) {
  const algorithm = text.startsWith('sha512:') ? ('sha512' as const) : ('sha256' as const);
  return { algorithm, hex: text.slice(7).toLowerCase() };
}

/** Cloud images with the suffix `.img` have qcow2 format, which must be passed to Proxmox explicitly. */
function detectImageFormat(url: string): 'qcow2' | 'raw' | 'vmdk' {
  const [, extension] = /\.(raw|vmdk)$/i.exec(new URL(url).pathname) ?? [];
  if (extension === undefined) return 'qcow2';
  return extension.toLowerCase() === 'raw' ? 'raw' : 'vmdk';
}

export function buildTemplate(key: string, template: TemplateFile) {
  const { id } = template;
  return {
    key,
    name: template.name,
    id: typeof id === 'number' ? id : undefined,
    idByHost: typeof id === 'object' ? id : {},
    image: template.image,
    ...buildSize(template),
    packages: template.packages,
    storage: template.storage,
    bridge: template.bridge,
    sources: template.sources,
    files: template.files,
    commands: template.commands,
    kubeadm: template.kubeadm?.version,
  };
}

export function buildSize({ cpu, memory, disk }: SizeFile) {
  return { cpu, memoryBytes: toBytes(memory), diskBytes: toBytes(disk) };
}
