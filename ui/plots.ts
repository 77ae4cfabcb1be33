// SPDX-License-Identifier: Apache-2.0
// Plots of the samples as SVG. Each has its latest values as text, so that nothing depends on seeing the lines.
import type { DashboardSample, DashboardState } from '../src/http/contract.ts';
import { create, createSvg, find, setColor } from './dom.ts';
import { formatBytes, formatSeconds, formatTime } from './format.ts';
import type { Work } from './frames.ts';

interface Line {
  readonly name: string;
  readonly points: readonly { readonly at: number; readonly value: number }[];
}

interface Plot {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  readonly isScatter?: boolean;
}

const WIDTH = 320;
const HEIGHT = 90;

function line(
  name: string,
  samples: readonly DashboardSample[],
  of: (one: DashboardSample) => number,
): Line {
  return { name, points: samples.map((one) => ({ at: one.at, value: of(one) })) };
}

export function* showPlots({
  samples,
  timesToReady,
}: Pick<DashboardState, 'samples' | 'timesToReady'>): Work {
  const whole = (value: number) => String(Math.round(value));
  const cores = (value: number) => `${value.toFixed(1)} cores`;
  const pools = Map.groupBy(timesToReady, ({ pool }) => pool);
  const plots: readonly Plot[] = [
    {
      title: 'Pending pods',
      format: whole,
      lines: [line('', samples, (one) => one.pending)],
    },
    { title: 'Nodes', format: whole, lines: [line('', samples, (one) => one.nodes)] },
    {
      title: 'CPU',
      format: cores,
      lines: [
        line('allocatable', samples, (one) => one.allocatableCpu),
        line('requested', samples, (one) => one.requestedCpu),
      ],
    },
    {
      title: 'Memory',
      format: formatBytes,
      lines: [
        line('allocatable', samples, (one) => one.allocatableMemory),
        line('requested', samples, (one) => one.requestedMemory),
      ],
    },
    {
      title: 'Time to ready',
      format: formatSeconds,
      isScatter: true,
      lines: [...pools].map(([name, times]) => ({
        name,
        points: times.map(({ at, seconds }) => ({ at, value: seconds })),
      })),
    },
  ];
  const drawn: HTMLElement[] = [];
  for (const plot of plots) {
    drawn.push(drawPlot(plot));
    yield;
  }
  find('plots').replaceChildren(...drawn);
}

function drawPlot(plot: Plot): HTMLElement {
  const points = plot.lines.flatMap((one) => one.points);
  const times = points.map(({ at }) => at);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const top = Math.max(1, ...points.map(({ value }) => value)) * 1.05;
  const x = (at: number) => (to === from ? WIDTH : ((at - from) / (to - from)) * WIDTH);
  const y = (value: number) => HEIGHT - (value / top) * HEIGHT;
  const latest = plot.lines.flatMap(({ name, points: own }, index) => {
    const last = own.at(-1);
    if (last === undefined) return [];
    return [{ text: `${name} ${plot.format(last.value)}`.trim(), index }];
  });
  const text = latest.length === 0 ? 'no data yet' : latest.map((one) => one.text).join(', ');
  const shapes = plot.lines.flatMap(({ points: own }, index) =>
    plot.isScatter === true
      ? own.map(({ at, value }) =>
          setColor(createSvg('circle', { cx: x(at), cy: y(value), r: 2.5 }), index),
        )
      : [
          setColor(
            createSvg('polyline', {
              points: own
                .map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
                .join(' '),
            }),
            index,
          ),
        ],
  );
  const label =
    points.length === 0
      ? ''
      : `${formatTime(from)} – ${formatTime(to)}, up to ${plot.format(top / 1.05)}`;
  return create(
    'figure',
    {},
    create(
      'figcaption',
      {},
      create('strong', {}, plot.title),
      ...(latest.length === 0 ? [create('span', {}, text)] : latest.map(legendOf)),
    ),
    createSvg(
      'svg',
      {
        viewBox: `-3 -3 ${WIDTH + 6} ${HEIGHT + 6}`,
        role: 'img',
        'aria-label': `${plot.title}: ${text}. ${label}`,
      },
      ...shapes,
    ),
    create('span', { class: 'amounts' }, label),
  );
}

function legendOf({ text, index }: { readonly text: string; readonly index: number }) {
  return create('span', {}, setColor(create('span', { class: 'dash' }), index), text);
}
