// SPDX-License-Identifier: Apache-2.0
// Logs and metrics: implements the ports Log and Meters, and wraps other ports to count and log what passes through them.
// Start reading at metrics.ts and log.ts.

export { withJournalTelemetry } from './journal-telemetry.ts';
export { createLog, type LogOptions } from './log.ts';
export { meteredCluster } from './metered-cluster.ts';
export { meteredTransport } from './metered-transport.ts';
export { createMetrics, type Metrics } from './metrics.ts';
