// SPDX-License-Identifier: Apache-2.0
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from 'vitest';
import type { CheckResult } from './check.ts';
import { formatReport, reportStatus } from './report.ts';

const RESULTS: readonly CheckResult[] = [
  {
    name: 'endpoint',
    group: 'region lab',
    subject: 'https://pve1:8006',
    status: 'ok',
    detail: 'answers',
  },
  {
    name: 'endpoint',
    group: 'region lab',
    subject: 'https://pve2:8006',
    status: 'ok',
    detail: 'answers',
  },
  {
    name: 'privileges',
    group: 'region lab',
    subject: 'disks',
    status: 'failure',
    cause: 'scaler@pve!sim lacks Datastore.AllocateSpace, Datastore.Audit on /storage/local-lvm',
    fix: 'Add the privileges to the role of the account, or grant another role on a Proxmox host:\npveum acl modify /storage/local-lvm --users scaler@pve --roles MachineScalerMore',
  },
  {
    name: 'cluster-autoscaler',
    group: 'Kubernetes',
    status: 'warning',
    cause: 'none runs',
    fix: 'Install it.',
  },
  { name: 'provider-ids', group: 'Kubernetes', status: 'skipped', detail: 'no answer' },
];

it('groups the results, counts those that are ok, and wraps everything but commands at 80 columns', () => {
  const text = formatReport(RESULTS, { colors: false, all: false });
  expect(text).toBe(`region lab
  ok       endpoint: 2 of 2
  FAILURE  privileges disks: scaler@pve!sim lacks Datastore.AllocateSpace,
           Datastore.Audit on /storage/local-lvm
           fix: Add the privileges to the role of the account, or grant another
           role on a Proxmox host:
             pveum acl modify /storage/local-lvm --users scaler@pve --roles MachineScalerMore

Kubernetes
  warning  cluster-autoscaler: none runs
           fix: Install it.
  skipped  provider-ids: no answer

5 checks, 1 failed, 1 with warnings, 1 skipped
`);
});

it('has the same text with colours, and every check with all', () => {
  const plain = formatReport(RESULTS, { colors: false, all: true });
  const colored = formatReport(RESULTS, { colors: true, all: true });
  expect(colored).toContain('\u001b[31m');
  expect(stripVTControlCharacters(colored)).toBe(plain);
  expect(plain).toContain('endpoint https://pve2:8006: answers');
});

it('has the status of the worst result', () => {
  expect(reportStatus(RESULTS)).toBe('failure');
  expect(reportStatus(RESULTS.slice(3))).toBe('warning');
  expect(reportStatus(RESULTS.slice(0, 2))).toBe('ok');
});
