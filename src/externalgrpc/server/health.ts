// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../gen/health/health_pb.js';
import type { Implementation } from './services.ts';
import { GrpcError } from './status.ts';

const LOOK_EVERY_MS = 1_000;

interface HealthParts {
  /** Full names; the empty one stands for the whole server. */
  readonly services: readonly string[];
  readonly isReady: () => boolean;
  readonly clock: Clock;
}

export function health({ services, isReady, clock }: HealthParts): Implementation<typeof Health> {
  const knows = (service: string) => service === '' || services.includes(service);
  const now = () => (isReady() ? Status.SERVING : Status.NOT_SERVING);
  return {
    check({ service }) {
      if (!knows(service)) throw new GrpcError('NotFound', 'no such service');
      return { status: now() };
    },
    async *watch({ service }, { signal }) {
      if (!knows(service)) yield { status: Status.SERVICE_UNKNOWN };
      let told: Status | undefined;
      while (!signal.aborted) {
        const status = knows(service) ? now() : told;
        if (status !== undefined && status !== told) yield { status };
        told = status;
        await clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
      }
    },
  };
}
