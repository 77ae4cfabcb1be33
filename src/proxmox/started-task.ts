// SPDX-License-Identifier: Apache-2.0
import { Bug } from '../ports/errors.ts';
import type { TaskRef } from '../ports/hypervisor.ts';
import { textOf } from './json.ts';
import { parseUpid, taskRefOf } from './upid.ts';

/** A call that starts work answers with the id of its task and nothing else. */
export function startedTask(data: unknown, doing: string): TaskRef {
  const upid = parseUpid(textOf(data) ?? '');
  if (upid === undefined) {
    throw new Bug('UNEXPECTED_ANSWER', `${doing}: Proxmox named no task`, {
      facts: { requestSent: true },
    });
  }
  return taskRefOf(upid);
}
