// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../gen/health/health_pb.js';
import type { Implementation } from './services.ts';
import { GrpcError } from './status.ts';

const CHECK_INTERVAL_MS = 1_000;

interface HealthParts {
  /** Full names; the empty name stands for the whole server. */
  readonly services: readonly string[];
  readonly isReady: () => boolean;
  readonly clock: Clock;
}

export function createHealthService({
  services,
  isReady,
  clock,
}: HealthParts): Implementation<typeof Health> {
  const isKnown = (service: string) => service === '' || services.includes(service);
  const currentStatus = () => (isReady() ? Status.SERVING : Status.NOT_SERVING);
  return {
    check({ service }) {
      if (!isKnown(service)) throw new GrpcError('NotFound', 'unknown service');
      return { status: currentStatus() };
    },
    async *watch({ service }, { signal }) {
      if (!isKnown(service)) yield { status: Status.SERVICE_UNKNOWN };
      let lastSent: Status | undefined;
      while (!signal.aborted) {
        const status = isKnown(service) ? currentStatus() : lastSent;
        if (status !== undefined && status !== lastSent) yield { status };
        lastSent = status;
        await clock.sleep(CHECK_INTERVAL_MS, { signal }).catch(() => undefined);
      }
    },
  };
}
