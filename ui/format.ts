// SPDX-License-Identifier: Apache-2.0

const GIB = 2 ** 30;

export function formatBytes(bytes: number): string {
  const gib = bytes / GIB;
  return `${gib >= 10 || Number.isInteger(gib) ? Math.round(gib) : gib.toFixed(1)} GiB`;
}

export function formatSeconds(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3_600).toFixed(1)} h`;
}

export function formatTime(at: number): string {
  return new Date(at).toLocaleTimeString([], { hour12: false });
}

export function formatMoney(amount: number | undefined): string {
  return amount === undefined ? '–' : amount.toFixed(2);
}

export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
