// SPDX-License-Identifier: Apache-2.0
// proxmox-autoscaler: its settings module, as our config of mode standalone with one pool.

import { type Context, SECRETS } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { PoolNames } from '../ours/pool-names.ts';
import { placeholderEndpoints } from '../ours/required.ts';
import type { Section } from '../source/tree.ts';
import { mapNetwork } from './network.ts';
import { mapScaling } from './scaling.ts';
import { carryChosen, textSetting } from './values.ts';

const REGION = 'pve';
const TEMPLATE = 'worker';
const POOL: DraftPath = ['pools', 0];

export function mapProxmoxAutoscaler(context: Context, settings: Section): void {
  const { work, read } = context;
  work.carryOwn(['mode'], 'standalone', '');
  mapLogin(context, settings);
  mapNames(context, settings);
  mapTemplate(context, settings);
  work.carryFixed(['join', 'kubeadm', 'via'], 'agent', 'joins by kubeadm through the guest agent');
  mapSize(context);
  mapNetwork(context, settings, POOL);
  mapLabel(context, settings);
  mapScaling(context, settings, POOL);
  read.unknown(settings, 'ignored-by-them', 'is not a setting of the program');
}

function mapLogin(context: Context, settings: Section): void {
  const { work, read } = context;
  const root: DraftPath = ['proxmox', REGION];
  const hostTree = settings.find('pxe_host');
  const host = read.text(hostTree);
  if (hostTree === undefined || host === undefined) {
    const about = { where: settings.where('pxe_host'), message: 'the address of the Proxmox API' };
    work.placeholder([...root, 'endpoints'], placeholderEndpoints(REGION), about);
  } else work.carry([...root, 'endpoints'], [endpointOf(host)], hostTree);
  const userTree = settings.find('pxe_user');
  const user = read.text(userTree);
  if (userTree === undefined || user === undefined) {
    const about = {
      where: settings.where('pxe_user'),
      message: 'the user for the Proxmox API, user@realm',
    };
    work.placeholder([...root, 'user'], 'root@pam', about);
  } else work.carry([...root, 'user'], user, userTree);
  settings.find('pxe_password');
  work.secretFile(
    [...root, 'passwordFile'],
    `${SECRETS}/proxmox-password`,
    settings.where('pxe_password'),
  );
  work.carryFixed(
    [...root, 'tls', 'insecure'],
    true,
    'never verifies the certificate of the Proxmox API',
  );
  work.note(
    { path: 'TLS' },
    'carried-differently',
    'the certificate of the Proxmox API is not verified, as before, which is warned about here: give tls.caFile or tls.fingerprints instead',
  );
}

function endpointOf(host: string): string {
  const bracketed = /^[\da-f]*:[\da-f:.]+$/i.test(host) ? `[${host}]` : host;
  return `https://${bracketed}:8006`;
}

function mapTemplate(context: Context, settings: Section): void {
  const chosen = textSetting(context, settings, 'pxe_autoscaled_node_template_vm');
  carryChosen(context, ['templates', TEMPLATE, 'name'], { chosen, value: chosen.value });
  context.work.note(
    chosen.where,
    'carried-differently',
    'any VM whose name contains this counts there; here the whole name must be equal',
  );
  context.work.carryOwn([...POOL, 'from', 'template'], TEMPLATE, '');
  context.work.carryFixed([...POOL, 'from', 'clone'], 'linked', 'makes linked clones');
}

function mapNames(context: Context, settings: Section): void {
  const { work } = context;
  const chosen = textSetting(context, settings, 'pxe_autoscaled_node_name');
  const name = new PoolNames(work).take(chosen.value, chosen.where);
  carryChosen(context, [...POOL, 'name'], { chosen, value: name });
  work.carryOwn([...POOL, 'regions'], [REGION], '');
  work.carryOwn([...POOL, 'join'], 'kubeadm', '');
  carryChosen(context, [...POOL, 'names', 'prefix'], { chosen, value: chosen.value.toLowerCase() });
  work.carryFixed([...POOL, 'names', 'suffix'], 'ordinal', 'numbers its VMs');
  work.note(
    chosen.where,
    'carried-differently',
    'VMs whose name contains this belong to the program there; here a mark on the VM decides, never its name',
  );
}

function mapSize({ work }: Context): void {
  const where = { path: 'size of a VM' };
  const message = 'machines were as large as the template: write its size';
  work.placeholder([...POOL, 'size'], { cpu: 2, memory: '4Gi', disk: '20Gi' }, { where, message });
}

/** The value is always `true` there, while our group label has the pool's name as its value. */
function mapLabel(context: Context, settings: Section): void {
  const chosen = textSetting(context, settings, 'node_group_label');
  carryChosen(context, [...POOL, 'labels', chosen.value], { chosen, value: 'true' });
  context.work.note(
    chosen.where,
    'carried-differently',
    'stays a label with the value true; the pool itself is marked by groupLabel, whose value is the name of the pool',
  );
}
