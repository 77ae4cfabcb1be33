// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { aMachine } from '../../ports/fakes/sample-records.ts';
import { Guests } from './guest-probes.ts';

const settled = () => Promise.resolve().then(() => Promise.resolve());

function booting(id: string, host: string): Machine {
  const machine = aMachine();
  const placement = { ...machine.placement!, host };
  return { ...machine, id: id as Machine['id'], phase: 'booting', phaseSince: 0, placement };
}

class Room {
  readonly guests: Guests;
  readonly machines: readonly Machine[];
  readonly asked: string[] = [];
  answer: () => Promise<boolean> = () => new Promise(() => {});

  constructor(
    count: number,
    host: (at: number) => string = () => 'pve1',
    onAnswer: () => void = () => undefined,
  ) {
    this.guests = new Guests(onAnswer);
    this.machines = Array.from({ length: count }, (_, at) => booting(`m${at}`, host(at)));
  }

  round(now: number) {
    return this.machines.map((machine) => this.only(machine, now));
  }

  only(machine: Machine, now: number) {
    return this.guests.answerTo({
      machine,
      machines: this.machines,
      now,
      ask: () => {
        this.asked.push(machine.id);
        return this.answer();
      },
    });
  }
}

describe('guests', () => {
  it('are asked two at once on each host, and nobody waits for the answer', () => {
    const room = new Room(6, (at) => `pve${at % 2}`);
    expect(room.round(1_000)).toEqual(Array.from({ length: 6 }, () => 'unknown'));
    expect(room.asked).toEqual(['m0', 'm1', 'm2', 'm3']);
  });

  it('have their turn one after the other, silent ones too', async () => {
    const room = new Room(4);
    room.answer = () => Promise.resolve(false);
    for (let round = 1; round <= 4; round += 1) {
      room.round(round * 1_000);
      await settled();
    }
    expect(room.asked).toEqual(['m0', 'm1', 'm2', 'm3', 'm0', 'm1', 'm2', 'm3']);
  });

  it('on a host of the same name elsewhere take nobody’s turn', async () => {
    const room = new Room(3);
    const [a, b, mine] = room.machines as [Machine, Machine, Machine];
    const elsewhere = (one: Machine) => ({
      ...one,
      placement: { ...one.placement!, region: 'elsewhere' },
    });
    room.answer = () => Promise.resolve(false);
    room.only(mine, 1_000);
    await settled();
    const question = {
      machine: mine,
      machines: [elsewhere(a), elsewhere(b), mine],
      now: 3_000,
      ask: () => Promise.resolve(true),
    };
    room.guests.answerTo(question);
    await settled();
    expect(room.guests.answerTo(question)).toBe('up');
  });

  it('do not wait for ever for others who are ahead and never ask', async () => {
    const room = new Room(3);
    const mine = room.machines[2]!;
    room.answer = () => Promise.resolve(false);
    room.round(0);
    await settled();
    // The other two are kept from asking from now on.
    room.only(mine, 2_000);
    await settled();
    const before = room.asked.length;
    for (let now = 4_000; now <= 12_000; now += 500) {
      room.only(mine, now);
      await settled();
    }
    expect(room.asked.length).toBeGreaterThan(before);
  });

  it('are asked on when the clock was set back', async () => {
    const room = new Room(1);
    room.answer = () => Promise.resolve(false);
    room.round(1_000_000);
    await settled();
    room.round(500_000);
    expect(room.asked).toEqual(['m0', 'm0']);
  });

  it('of which nobody heard for long teach nothing', async () => {
    const room = new Room(2);
    const [first, next] = room.machines as [Machine, Machine];
    room.answer = () => Promise.resolve(false);
    room.only(first, 5_000);
    await settled();
    room.only(first, 5_100);
    room.answer = () => Promise.resolve(true);
    room.only(first, 600_000);
    await settled();
    expect(room.only(first, 600_100)).toBe('up');
    expect(room.guests.nextAt({ ...next, phaseSince: 700_000 }, 700_000)).toBe(700_000);
  });

  it('tell their answer once', async () => {
    const room = new Room(1);
    room.answer = () => Promise.resolve(true);
    room.round(1_000);
    await settled();
    room.answer = () => new Promise(() => {});
    expect(room.round(2_000)).toEqual(['up']);
    expect(room.round(3_000)).toEqual(['unknown']);
  });

  it('of a host that cannot be asked are trouble, once', async () => {
    const room = new Room(1);
    room.answer = () => Promise.reject(new Error('no route'));
    room.round(1_000);
    await settled();
    expect(() => room.round(2_000)).toThrow('no route');
    expect(room.round(3_000)).toEqual(['unknown']);
  });

  it('that are silent are asked again while the question is open, but not by more than the host bears', () => {
    const room = new Room(1);
    for (const now of [1_000, 2_000, 2_500, 4_000, 5_500]) room.round(now);
    expect(room.asked).toHaveLength(2);
  });

  it('that have been silent for long are asked less and less often', async () => {
    const room = new Room(1);
    room.answer = () => Promise.resolve(false);
    for (let now = 500; now <= 600_000; now += 500) {
      room.round(now);
      await settled();
    }
    expect(room.asked.length).toBeLessThan(100);
    expect(room.asked.length).toBeGreaterThan(50);
  });

  it('of a pool that nobody knows yet: those that have been at it longest are asked, unless they never answer', async () => {
    const room = new Room(4);
    room.answer = () => Promise.resolve(false);
    room.machines.forEach((machine, at) => Object.assign(machine, { phaseSince: at }));
    for (let now = 1_000; now <= 119_000; now += 1_000) {
      room.round(now);
      await settled();
    }
    expect(room.asked.filter((id) => id === 'm0').length).toBeGreaterThan(10);
    const young = room.asked.filter((id) => id === 'm3').length;
    for (let now = 121_000; now <= 180_000; now += 1_000) {
      room.round(now);
      await settled();
    }
    expect(room.asked.filter((id) => id === 'm3').length).toBeGreaterThan(young);
  });

  it('are not asked before a guest of their pool was ever up', async () => {
    const room = new Room(2);
    const [one, other] = room.machines as [Machine, Machine];
    Object.assign(other, { phaseSince: 20_000 });
    room.answer = () => Promise.resolve(false);
    room.only(one, 9_000);
    await settled();
    room.answer = () => Promise.resolve(true);
    room.only(one, 11_000);
    await settled();
    expect(room.only(one, 11_500)).toBe('up');
    expect(room.guests.nextAt(other, 20_000)).toBeGreaterThan(30_000);
    room.only(other, 29_900);
    expect(room.asked).toEqual(['m0', 'm0']);
    room.only(other, 31_500);
    expect(room.asked).toEqual(['m0', 'm0', 'm1']);
  });

  it('ring when an answer comes, and are due then', async () => {
    let rings = 0;
    const room = new Room(
      3,
      () => 'pve1',
      () => {
        rings += 1;
      },
    );
    const [first, , third] = room.machines as [Machine, Machine, Machine];
    let answer: (isUp: boolean) => void = () => undefined;
    room.answer = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    room.round(1_000);
    expect(room.asked).toEqual(['m0', 'm1']);
    expect(room.guests.nextAt(third, 1_000)).toBe(Number.POSITIVE_INFINITY);
    answer(true);
    await settled();
    expect(rings).toBe(1);
    expect(room.machines.filter((machine) => room.guests.nextAt(machine, 1_000) <= 1_000)).toEqual([
      room.machines[1],
      third,
    ]);
    expect(room.guests.nextAt(first, 1_000)).toBe(2_500);
  });
});
