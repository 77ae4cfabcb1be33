// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { addressesInUse } from '../model/held-addresses.ts';
import { isLeaseValid, RECONCILE_LEASE } from '../model/lease.ts';
import { PHASES } from '../model/machine.ts';
import type { Store } from '../ports/store.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { type StoreOptions, withStore, withStoreOptions } from './with-store.ts';

export function addStateShow(parent: Command, host: CommandHost): void {
  const command = parent
    .command('show')
    .description('summarise the state: machines by phase, open intents, driver');
  withStoreOptions(withOutputOption(command)).action((options: StoreOptions & OutputOptions) =>
    withStore(host, options, async ({ store, location }) => {
      const summary = await summarise(store, host.context.clock.now());
      await printObjects(host, options, {
        value: { path: location, ...summary },
        names: [location],
        text: () => render(location, summary),
      });
    }),
  );
}

interface Summary {
  readonly machines: Readonly<Record<string, number>>;
  readonly openIntents: number;
  readonly addressesInUse: number;
  readonly drains: number;
  readonly driver: {
    readonly holder: string;
    readonly token: number;
    readonly isCurrent: boolean;
  } | null;
}

async function summarise(store: Store, now: number): Promise<Summary> {
  const [machines, intents, drains, lease] = await Promise.all([
    store.machines.list(),
    store.intents.list(),
    store.drains.list(),
    store.leases.read(RECONCILE_LEASE),
  ]);
  const count = (phase: string) => machines.filter(({ value }) => value.phase === phase).length;
  return {
    machines: Object.fromEntries(PHASES.map((phase) => [phase, count(phase)])),
    openIntents: intents.filter(({ value }) => value.state === 'open').length,
    addressesInUse: addressesInUse(machines.map(({ value }) => value)).length,
    drains: drains.filter(({ value }) => !['done', 'undone'].includes(value.state)).length,
    driver:
      lease === undefined
        ? null
        : { holder: lease.holder, token: lease.token, isCurrent: isLeaseValid(lease, now) },
  };
}

function render(path: string, summary: Summary): string {
  const present = Object.entries(summary.machines).filter(([, count]) => count > 0);
  const { driver } = summary;
  return [
    `state     ${path}`,
    `machines  ${present.map(([phase, count]) => `${count} ${phase}`).join(', ') || 'none'}`,
    `intents   ${summary.openIntents} open`,
    `addresses ${summary.addressesInUse} in use`,
    `drains    ${summary.drains} in progress`,
    `driver    ${driver === null ? 'none' : `${driver.holder}, token ${driver.token}${driver.isCurrent ? '' : ' (lease expired)'}`}`,
    '',
  ].join('\n');
}
