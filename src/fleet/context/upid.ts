// SPDX-License-Identifier: Apache-2.0
// What a task id tells by itself: `UPID:host:pid:start:time:type:subject:owner:`.

/** The host that runs it, and the only one that knows its end. */
export function taskHostOf(upid: string): string {
  return upid.split(':')[1] ?? '';
}

export function taskTypeOf(upid: string): string {
  return upid.split(':')[5] ?? '';
}

/** The VM it is about; of a clone the *source*, of a download the file name. */
export function taskSubjectOf(upid: string): string {
  return upid.split(':')[6] ?? '';
}
