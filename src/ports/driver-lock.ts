// SPDX-License-Identifier: Apache-2.0

/** The driver that had the lock before and has ended: the lock ends with its process. */
export interface EndedDriver {
  /** As in its leases. */
  readonly holder: string;
  /** How long, from now, a request of it may still take effect, if none does after `maxRequestMs`. */
  unsettledMs(maxRequestMs: number): number;
}

/**
 * A lock beside the store that the operating system releases when its process ends, however it ends. A lease alone
 * cannot tell a dead holder from a suspended one; who has this lock knows that the holder before has ended.
 */
export interface DriverLock {
  /** False while another process has it. Has no effect when this process has it. */
  tryLock(): boolean;
  /** Who held it before. Undefined without the lock, and when it is not known. */
  endedDriver(): EndedDriver | undefined;
  /** Who the lock names: this process once it has claimed it. Undefined without the lock. */
  holder(): string | undefined;
  /** Notes that this process is the driver. Needs the lock. */
  claim(holder: string): void;
  /** Notes how long ago the last request began that has no known result; undefined: all have one. */
  recordUnsettled(ageMs: number | undefined): void;
  unlock(): void;
}
