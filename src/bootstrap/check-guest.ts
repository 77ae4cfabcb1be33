// SPDX-License-Identifier: Apache-2.0
// What would break a seed, or quietly make another machine than the one that was asked for.
import { dnsSubdomain } from '../model/dns-name.ts';
import type { GuestFile } from './guest-file.ts';
import { proxyProblem } from './proxy.ts';
import type { ExtraFile, GuestExtras, LoginInput, MachineInput } from './seed-input.ts';
import { isWellFormed } from './yaml-text.ts';

/** Linux takes no longer host name. */
const HOST_NAME_LENGTH = 64;

export function machineProblem({ name, vmId, region }: MachineInput): string | undefined {
  const checked = dnsSubdomain(name);
  if (!checked.ok) return `machine name '${name}' ${checked.problem}`;
  if (name.length > HOST_NAME_LENGTH) {
    return `machine name '${name}' is longer than ${HOST_NAME_LENGTH} characters`;
  }
  if (!Number.isInteger(vmId) || vmId < 100) return `${vmId} is not a VM id`;
  return /^[^\s/]+$/.test(region) ? undefined : `'${region}' is not a region`;
}

export function loginProblem({ user, publicKeys }: LoginInput): string | undefined {
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(user)) return `'${user}' is not a user name`;
  // One line each; a line break would smuggle in a second entry.
  const isKey = (key: string) =>
    /^\S+ [A-Za-z0-9+/=]+( [\x20-\x7e\u00a1-\ud7ff]*)?$/.test(key.trim());
  return publicKeys.every(isKey) ? undefined : 'an SSH public key is not one line of a key file';
}

export function extrasProblem({ packages, files, proxy }: GuestExtras): string | undefined {
  const odd = packages.find((name) => !/^[A-Za-z0-9][A-Za-z0-9+._:=~-]*$/.test(name));
  if (odd !== undefined) return `'${odd}' is not the name of a package`;
  return files.map(fileProblem).find((problem) => problem !== undefined) ?? proxyProblem(proxy);
}

function fileProblem({ path, content, permissions }: ExtraFile): string | undefined {
  const isPath = /^\/[\x20-\x2e\x30-\x7e]+(\/[\x20-\x2e\x30-\x7e]+)*$/.test(path);
  if (!isPath || /\/\.\.?(\/|$)/.test(path)) {
    return `'${path}' is not an absolute path in the guest`;
  }
  if (!/^0?[0-7]{3,4}$/.test(permissions)) return `'${permissions}' is not an octal mode (${path})`;
  return isWellFormed(content) ? undefined : `the content of '${path}' has broken characters`;
}

export function extraFile({ path, content, permissions }: ExtraFile): GuestFile {
  return { path, content, mode: permissions.replace(/^0+(?=[0-7]{3})/, '').padStart(4, '0') };
}

/** Two files for one path: one of them would silently be lost. */
export function twiceProblem(files: readonly GuestFile[]): string | undefined {
  const paths = files.map(({ path }) => path);
  const twice = paths.find((path, index) => paths.indexOf(path) !== index);
  return twice === undefined ? undefined : `two files for '${twice}'`;
}
