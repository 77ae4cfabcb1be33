// SPDX-License-Identifier: Apache-2.0
/** Proxmox writes them sorted and in lower case unless told otherwise by the data center's tag style. */
export function tagsOf(text: string | undefined): readonly string[] {
  const tags = (text ?? '').split(/[;,\s]+/).filter((tag) => tag !== '');
  return [...new Set(tags.map((tag) => tag.toLowerCase()))].sort();
}
