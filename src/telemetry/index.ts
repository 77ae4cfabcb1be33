// SPDX-License-Identifier: Apache-2.0
// What the program tells of itself while it runs: the log, and the metrics of src/ports/metric-table.ts. Implements
// the ports Log and Meters, and wraps other ports so that what goes through them is counted and told. Must not know
// who tells it what. Start reading at metrics.ts and log.ts.
export { createLog, type LogOptions } from './log.ts';
export { meteredCluster } from './metered-cluster.ts';
export { meteredTransport } from './metered-transport.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { tellingStore } from './told-journal.ts';
