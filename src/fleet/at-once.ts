// SPDX-License-Identifier: Apache-2.0

/** Works on all, a few at once. One that fails keeps no other from ending; then the first failure is told. */
export async function atOnce<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  const failures: unknown[] = [];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      await work(item).catch((error: unknown) => {
        failures.push(error);
        queue.length = 0;
      });
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
}
