// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { aMachine } from '../../ports/fakes/sample-records.ts';
import { Guests } from './guests.ts';

const settled = () => Promise.resolve().then(() => Promise.resolve());

function booting(id: string, host: string): Machine {
  const machine = aMachine();
  const placement = { ...machine.placement!, host };
  return { ...machine, id: id as Machine['id'], phase: 'booting', phaseSince: 0, placement };
}

class Room {
  readonly guests = new Guests();
  readonly machines: readonly Machine[];
  readonly asked: string[] = [];
  answer: () => Promise<boolean> = () => new Promise(() => {});

  constructor(count: number, host: (at: number) => string = () => 'pve1') {
    this.machines = Array.from({ length: count }, (_, at) => booting(`m${at}`, host(at)));
  }

  round(now: number) {
    return this.machines.map((machine) =>
      this.guests.answerTo({
        machine,
        machines: this.machines,
        now,
        ask: () => {
          this.asked.push(machine.id);
          return this.answer();
        },
      }),
    );
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

  it('are not asked before a guest of their pool was ever up', async () => {
    const room = new Room(1);
    room.answer = () => Promise.resolve(true);
    room.round(10_000);
    await settled();
    room.round(10_500);
    expect(room.asked).toHaveLength(1);
    room.round(9_000);
    expect(room.asked).toHaveLength(1);
    room.round(9_500);
    expect(room.asked).toHaveLength(2);
  });
});
