// SPDX-License-Identifier: Apache-2.0
import { clockContract } from '../ports/contract/clock.contract.ts';
import { randomContract } from '../ports/contract/random.contract.ts';
import { systemClock, systemRandom } from './index.ts';

clockContract('system', () => ({ clock: systemClock, advance: () => Promise.resolve() }));
randomContract('system', () => systemRandom);
