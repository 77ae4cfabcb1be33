// SPDX-License-Identifier: Apache-2.0
// Cron expressions: minute, hour, day, month, weekday; each field is a list of numbers, names, ranges and
// steps. Whether a day exists in a month is not checked here.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names of the values, starting at `min`. */
  readonly names?: readonly string[];
}

const FIELDS: readonly CronField[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day', min: 1, max: 31 },
  {
    name: 'month',
    min: 1,
    max: 12,
    names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  },
  // Sunday is 0 and 7.
  {
    name: 'weekday',
    min: 0,
    max: 7,
    names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'],
  },
];

/** The message names the field but never repeats its text. */
export function parseCron(value: string): Parsed<string> {
  const texts = value.trim().split(/\s+/);
  if (texts.length !== FIELDS.length) {
    return refused('must have five fields: minute, hour, day, month, weekday');
  }
  const wrong = FIELDS.find((field, index) => !isValidField(texts[index] ?? '', field));
  return wrong === undefined
    ? accepted(value)
    : refused(`has an invalid ${wrong.name} field; use ${describeField(wrong)}`);
}

function describeField({ min, max, names = [] }: CronField): string {
  const [first] = names;
  const named = first === undefined ? '' : ` or ${first} to ${names.at(-1)}`;
  return `a '*' or numbers from ${min} to ${max}${named}, as 'a,b', 'a-b' or '*/step'`;
}

function isValidField(text: string, field: CronField): boolean {
  return text.split(',').every((item) => isValidItem(item, field));
}

function isValidItem(text: string, field: CronField): boolean {
  const [span = '', step, ...more] = text.split('/');
  const isStep = step === undefined || (/^\d{1,2}$/.test(step) && isValidStep(step, field));
  return more.length === 0 && isStep && isValidRange(span, field);
}

function isValidStep(step: string, { max }: CronField): boolean {
  return Number(step) >= 1 && Number(step) <= max;
}

function isValidRange(text: string, field: CronField): boolean {
  if (text === '*' || text === '?') return true;
  const [from = '', to = from, ...more] = text.split('-');
  const first = parseFieldValue(from, field);
  const last = parseFieldValue(to, field);
  if (more.length > 0 || first === undefined || last === undefined) return false;
  // `fri-sun`
  return first <= (last === 0 && field.max === 7 ? 7 : last);
}

function parseFieldValue(text: string, { min, max, names = [] }: CronField): number | undefined {
  const word = names.indexOf(text.toLowerCase());
  if (word >= 0) return word + min;
  const number = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return number >= min && number <= max ? number : undefined;
}
