// SPDX-License-Identifier: Apache-2.0
// Capabilities of a host: CPU models, machine types, one network interface.

import { parameterError } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import { propertyFields } from '../schema/property-string.ts';

const GENERIC_MODELS = ['x86-64-v2', 'x86-64-v2-AES', 'x86-64-v3', 'x86-64-v4'];

function listCpuModels(call: Call): unknown {
  const fields = propertyFields(
    call.state.version === '8.4' ? 'pve-vm-cpu-conf~8.4' : 'pve-vm-cpu-conf',
  );
  const names = [...GENERIC_MODELS, ...(fields['reported-model']?.enum ?? [])];
  return names.map((name) => ({ name, custom: 0, vendor: 'default' }));
}

function listMachineTypes(call: Call): unknown {
  const version = call.state.version === '8.4' ? '9.2' : '10.1';
  return ['i440fx', 'q35'].map((type) => ({ id: `pc-${type}-${version}`, type, version }));
}

function getNetworkInterface(call: Call): unknown {
  const name = call.text('iface');
  const bridges = call.state.hosts.get(call.host)?.bridges ?? [];
  const index = bridges.findIndex((bridge) => bridge.name === name);
  if (index !== -1) {
    return { type: 'bridge', method: 'manual', method6: 'manual', priority: index + 3 };
  }
  const card = /^eno(\d+)$/.exec(name)?.[1];
  if (card !== undefined && Number(card) >= 1 && Number(card) <= bridges.length) {
    return { type: 'eth', method: 'manual', method6: 'manual', priority: 2 };
  }
  throw parameterError({ iface: 'interface does not exist' });
}

export const HOST_INFO_HANDLERS: Handlers = {
  'GET /nodes/{node}/capabilities/qemu/cpu': listCpuModels,
  'GET /nodes/{node}/capabilities/qemu/cpu-flags': () => [],
  'GET /nodes/{node}/capabilities/qemu/machines': listMachineTypes,
  'GET /nodes/{node}/network/{iface}': getNetworkInterface,
};
