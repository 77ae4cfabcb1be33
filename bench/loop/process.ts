// SPDX-License-Identifier: Apache-2.0
// One measurement in a process of its own, so that its memory is not that of an earlier one. Usage: node process.ts
// OPTIONS, as JSON; prints the figures as JSON.
import { type DecisionOptions, measureDecision } from './decision.ts';
import { type DrainOptions, measureScaleDown } from './scale-down.ts';

const [text = '{}'] = process.argv.slice(2);
const options = JSON.parse(text) as DecisionOptions | DrainOptions;
const figures = 'load' in options ? await measureDecision(options) : measureScaleDown(options);
console.log(JSON.stringify(figures));
