// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Random } from '../random.ts';

export function randomContract(name: string, make: () => Random): void {
  describe(`Random contract: ${name}`, () => {
    it('generates unique version 4 UUIDs in lower case', () => {
      const random = make();
      const ids = Array.from({ length: 1_000 }, () => random.uuid());
      expect(new Set(ids).size).toBe(ids.length);
      for (const id of ids)
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    });

    it('draws every integer below the bound and no other', () => {
      const random = make();
      const seen = new Set(Array.from({ length: 2_000 }, () => random.integer(7)));
      expect([...seen].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
      expect(random.integer(1)).toBe(0);
    });

    it('draws fractions of at least 0 and below 1', () => {
      const random = make();
      const drawn = Array.from({ length: 2_000 }, () => random.fraction());
      expect(drawn.every((value) => value >= 0 && value < 1)).toBe(true);
      const mean = drawn.reduce((sum, value) => sum + value, 0) / drawn.length;
      expect(mean).toBeGreaterThan(0.4);
      expect(mean).toBeLessThan(0.6);
    });

    it('returns the requested number of bytes', () => {
      expect(make().bytes(0)).toHaveLength(0);
      expect(new Set(make().bytes(4_096)).size).toBeGreaterThan(200);
    });
  });
}
