// SPDX-License-Identifier: Apache-2.0

/** Works on all, a few at once. One that fails keeps no other from ending; then the first failure is told. */
export async function forEachConcurrent<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  // One iterator for all: taking from the front of a long array moves everything behind it.
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
