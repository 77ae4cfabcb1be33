// SPDX-License-Identifier: Apache-2.0
// What is served over HTTP: health, readiness and metrics. Owns routes and the listener; must not know how the
// answers come about. Start reading at health-app.ts; what the answers look like is in contract.ts.
export type { Health, Readiness } from './contract.ts';
export { type HealthSources, healthApp } from './health-app.ts';
export { type ListenAddress, type Listening, listen } from './listen.ts';
