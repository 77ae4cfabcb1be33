// SPDX-License-Identifier: Apache-2.0
// What a task id tells by itself: `UPID:host:pid:start:time:type:subject:owner:`.

export function taskTypeOf(upid: string): string {
  return upid.split(':')[5] ?? '';
}

/** The VM it is about; of a clone the *source*, of a download the file name. */
export function taskSubjectOf(upid: string): string {
  return upid.split(':')[6] ?? '';
}
