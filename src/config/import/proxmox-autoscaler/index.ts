// SPDX-License-Identifier: Apache-2.0
// proxmox-autoscaler: converts its settings module to a config of mode standalone with one pool.

import type { ConfigPath } from '../../config-path.ts';
import { type ImportContext, SECRETS_FOLDER } from '../context.ts';
import { PoolNameAllocator } from '../output/naming.ts';
import { placeholderEndpoints } from '../output/required.ts';
import type { SourceSection } from '../source/tree.ts';
import { mapNetwork } from './network.ts';
import { mapScaling } from './scaling.ts';
import { readTextSetting, setFromSetting } from './shipped-defaults.ts';

const REGION = 'pve';
const TEMPLATE = 'worker';
const POOL: ConfigPath = ['pools', 0];

export function mapProxmoxAutoscaler(context: ImportContext, settings: SourceSection): void {
  const { writer, reader } = context;
  writer.setOwn(['mode'], 'standalone', '');
  mapLogin(context, settings);
  mapNames(context, settings);
  mapTemplate(context, settings);
  writer.setFixedBehavior(
    ['join', 'kubeadm', 'via'],
    'agent',
    'joins with kubeadm through the guest agent',
  );
  mapSize(context);
  mapNetwork(context, settings, POOL);
  mapLabel(context, settings);
  mapScaling(context, settings, POOL);
  reader.noteUnreadKeys(settings, 'ignored-by-source', 'is not a setting of the source system');
}

function mapLogin(context: ImportContext, settings: SourceSection): void {
  const { writer, reader } = context;
  const root: ConfigPath = ['proxmox', REGION];
  const hostTree = settings.find('pxe_host');
  const host = reader.readText(hostTree);
  if (hostTree === undefined || host === undefined) {
    const placeholder = {
      where: settings.refTo('pxe_host'),
      message: 'the URL of the Proxmox API',
    };
    writer.setPlaceholder([...root, 'endpoints'], placeholderEndpoints(REGION), placeholder);
  } else writer.set([...root, 'endpoints'], [toEndpoint(host)], hostTree);
  const userTree = settings.find('pxe_user');
  const user = reader.readText(userTree);
  if (userTree === undefined || user === undefined) {
    const placeholder = {
      where: settings.refTo('pxe_user'),
      message: 'the user for the Proxmox API, user@realm',
    };
    writer.setPlaceholder([...root, 'user'], 'root@pam', placeholder);
  } else writer.set([...root, 'user'], user, userTree);
  settings.find('pxe_password');
  writer.setSecretFile(
    [...root, 'passwordFile'],
    `${SECRETS_FOLDER}/proxmox-password`,
    settings.refTo('pxe_password'),
  );
  writer.setFixedBehavior(
    [...root, 'tls', 'insecure'],
    true,
    'never verifies the certificate of the Proxmox API',
  );
  writer.note(
    { path: 'TLS' },
    'imported-differently',
    'the certificate of the Proxmox API is still not verified, which causes a warning; set tls.caFile or tls.fingerprints instead',
  );
}

function toEndpoint(host: string): string {
  const bracketed = /^[\da-f]*:[\da-f:.]+$/i.test(host) ? `[${host}]` : host;
  return `https://${bracketed}:8006`;
}

function mapTemplate(context: ImportContext, settings: SourceSection): void {
  const setting = readTextSetting(context, settings, 'pxe_autoscaled_node_template_vm');
  setFromSetting(context, ['templates', TEMPLATE, 'name'], { setting, value: setting.value });
  context.writer.note(
    setting.where,
    'imported-differently',
    'the source system matches any VM whose name contains this text; in pvescaler the whole name must match',
  );
  context.writer.setOwn([...POOL, 'from', 'template'], TEMPLATE, '');
  context.writer.setFixedBehavior([...POOL, 'from', 'clone'], 'linked', 'makes linked clones');
}

function mapNames(context: ImportContext, settings: SourceSection): void {
  const { writer } = context;
  const setting = readTextSetting(context, settings, 'pxe_autoscaled_node_name');
  const name = new PoolNameAllocator(writer).allocate(setting.value, setting.where);
  setFromSetting(context, [...POOL, 'name'], { setting, value: name });
  writer.setOwn([...POOL, 'regions'], [REGION], '');
  writer.setOwn([...POOL, 'join'], 'kubeadm', '');
  setFromSetting(context, [...POOL, 'names', 'prefix'], {
    setting,
    value: setting.value.toLowerCase(),
  });
  writer.setFixedBehavior([...POOL, 'names', 'suffix'], 'ordinal', 'numbers its VMs');
  writer.note(
    setting.where,
    'imported-differently',
    'the source system owns every VM whose name contains this text; in pvescaler a marker on the VM proves ownership, never its name',
  );
}

function mapSize({ writer }: ImportContext): void {
  const where = { path: 'size of a VM' };
  const message = 'the size of the template, which machines had so far';
  writer.setPlaceholder(
    [...POOL, 'size'],
    { cpu: 2, memory: '4Gi', disk: '20Gi' },
    { where, message },
  );
}

/** The value is always `true` in the source system, while the value of our group label is the pool name. */
function mapLabel(context: ImportContext, settings: SourceSection): void {
  const setting = readTextSetting(context, settings, 'node_group_label');
  setFromSetting(context, [...POOL, 'labels', setting.value], { setting, value: 'true' });
  context.writer.note(
    setting.where,
    'imported-differently',
    'stays a label with the value true; pool membership is marked by groupLabel, whose value is the pool name',
  );
}
