// SPDX-License-Identifier: Apache-2.0

/** Runs `work` for all items, `limit` at the same time. After a failure no further item is started; then it throws. */
export async function forEachConcurrent<T>(
  items: readonly T[],
  { limit }: { readonly limit: number },
  work: (item: T) => Promise<void>,
): Promise<void> {
  // One iterator for all workers: removing from the front of a long array would move everything behind it.
  const queue = [...items].values();
  const failures: unknown[] = [];
  const worker = async () => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) {
      await work(next.value).catch((error: unknown) => {
        failures.push(error);
      });
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
}
