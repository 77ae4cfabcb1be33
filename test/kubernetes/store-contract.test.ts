// SPDX-License-Identifier: Apache-2.0
import { storeContract } from '../../src/ports/contract/store.contract.ts';
import { StoreBench } from './store-bench.ts';

storeContract('Kubernetes, on the simulator', async (clock) => {
  const bench = new StoreBench(clock);
  const store = await bench.open();
  return { store, reopen: () => bench.open(), cleanup: () => bench.cleanup() };
});
