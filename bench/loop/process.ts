// SPDX-License-Identifier: Apache-2.0
// One measurement in a process of its own, so that its memory is not that of an earlier one. Usage: node process.ts
// OPTIONS, as JSON; prints the figures as JSON.
import { type DecisionOptions, measureDecision } from './decision.ts';

const [options = '{}'] = process.argv.slice(2);
console.log(JSON.stringify(await measureDecision(JSON.parse(options) as DecisionOptions)));
