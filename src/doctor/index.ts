// SPDX-License-Identifier: Apache-2.0
export { CHECK_NAMES, type CheckName, type CheckResult } from './check.ts';
export type { DoctorAdapters, DoctorContext, ProbeOptions } from './context.ts';
export { examine } from './examine.ts';
export { formatReport, reportStatus } from './report.ts';
export type { CheckProgress } from './run-checks.ts';
