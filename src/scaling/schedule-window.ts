// SPDX-License-Identifier: Apache-2.0
// Whether a time window that starts by a cron expression is open. The config has validated expression and time zone.

export interface ScheduleWindow {
  /** Cron expression: minute, hour, day, month, weekday. */
  readonly start: string;
  readonly durationMs: number;
  readonly timeZone: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The end of the window if it is open now; otherwise undefined. */
export function openUntil(window: ScheduleWindow, now: number): number | undefined {
  const startedAt = lastStart(window, now);
  if (startedAt === undefined) return undefined;
  const end = startedAt + window.durationMs;
  return end > now ? end : undefined;
}

/**
 * The last start at or before now that can still be open. Searches the local clock backwards, by days and hours that do
 * not match as a whole.
 */
function lastStart(
  { start, durationMs, timeZone }: ScheduleWindow,
  now: number,
): number | undefined {
  const cron = parseFields(start);
  const clock = localClock(timeZone);
  const local = clock.localOf(now);
  // A change of the clock may make the window appear longer than it is.
  const earliest = local - durationMs - HOUR_MS;
  let at = local - (local % MINUTE_MS);
  while (at > earliest) {
    if (!matchesDay(cron, at)) at -= (at % DAY_MS) + MINUTE_MS;
    else if (!cron.hour.has(hourOf(at))) at -= (at % HOUR_MS) + MINUTE_MS;
    else if (!cron.minute.has(minuteOf(at))) at -= MINUTE_MS;
    else return clock.instantOf(at);
  }
  return undefined;
}

const hourOf = (local: number): number => Math.floor((local % DAY_MS) / HOUR_MS);
const minuteOf = (local: number): number => Math.floor((local % HOUR_MS) / MINUTE_MS);

interface CronFields {
  readonly minute: ReadonlySet<number>;
  readonly hour: ReadonlySet<number>;
  readonly day: ReadonlySet<number>;
  readonly month: ReadonlySet<number>;
  readonly weekday: ReadonlySet<number>;
  /** Whether the field restricts anything: a day matches either of two restricted fields. */
  readonly isDayRestricted: boolean;
  readonly isWeekdayRestricted: boolean;
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const parsed = new Map<string, CronFields>();

function parseFields(text: string): CronFields {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const [minute = '*', hour = '*', day = '*', month = '*', weekday = '*'] = text
    .trim()
    .split(/\s+/);
  const days = fieldValues(weekday, { min: 0, max: 7, names: WEEKDAYS });
  const fields = {
    minute: fieldValues(minute, { min: 0, max: 59 }),
    hour: fieldValues(hour, { min: 0, max: 23 }),
    day: fieldValues(day, { min: 1, max: 31 }),
    month: fieldValues(month, { min: 1, max: 12, names: MONTHS }),
    // Sunday is 0 and 7.
    weekday: new Set([...days].map((value) => value % 7)),
    isDayRestricted: !isAny(day),
    isWeekdayRestricted: !isAny(weekday),
  };
  parsed.set(text, fields);
  return fields;
}

function isAny(text: string): boolean {
  return text.startsWith('*') || text.startsWith('?');
}

interface FieldRange {
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

function fieldValues(text: string, range: FieldRange): ReadonlySet<number> {
  return new Set(text.split(',').flatMap((item) => itemValues(item, range)));
}

function itemValues(item: string, range: FieldRange): readonly number[] {
  const [span = '', stepText] = item.split('/');
  const step = stepText === undefined ? 1 : Number(stepText);
  const [first, last] = spanOf(span, { ...range, hasStep: stepText !== undefined });
  const values: number[] = [];
  for (let value = first; value <= last; value += step) values.push(value);
  return values;
}

function spanOf(
  span: string,
  { min, max, names = [], hasStep }: FieldRange & { readonly hasStep: boolean },
): readonly [number, number] {
  if (isAny(span)) return [min, max];
  const valueOf = (text: string): number => {
    const name = names.indexOf(text.toLowerCase());
    return name < 0 ? Number(text) : name + min;
  };
  const [from = '', to] = span.split('-');
  const first = valueOf(from);
  if (to === undefined) return [first, hasStep ? max : first];
  const last = valueOf(to);
  // `fri-sun`
  return [first, last === 0 && max === 7 ? 7 : last];
}

function matchesDay(cron: CronFields, local: number): boolean {
  const date = new Date(local);
  if (!cron.month.has(date.getUTCMonth() + 1)) return false;
  const isDay = cron.day.has(date.getUTCDate());
  const isWeekday = cron.weekday.has(date.getUTCDay());
  return cron.isDayRestricted && cron.isWeekdayRestricted ? isDay || isWeekday : isDay && isWeekday;
}

/** Converts between instants and the local clock of a time zone, which is counted like UTC. */
interface LocalClock {
  localOf(instant: number): number;
  instantOf(local: number): number;
}

const clocks = new Map<string, LocalClock>();

function localClock(timeZone: string): LocalClock {
  const known = clocks.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const localOf = (instant: number): number => {
    const parts = new Map(
      format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]),
    );
    const part = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
    return Date.UTC(
      part('year'),
      part('month') - 1,
      part('day'),
      part('hour'),
      part('minute'),
      part('second'),
    );
  };
  const clock: LocalClock = {
    localOf,
    // The offset at the instant that has the same digits in UTC, corrected once if the clock changed in between.
    instantOf: (local) => {
      const guess = local - (localOf(local) - local);
      return guess - (localOf(guess) - local);
    },
  };
  clocks.set(timeZone, clock);
  return clock;
}
