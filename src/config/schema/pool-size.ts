// SPDX-License-Identifier: Apache-2.0
// The machine size of a pool: one size, several sizes to choose from, or a range of sizes.
import * as z from 'zod';
import { bytes, wholeNumber } from './amount-leaves.ts';
import { form, key } from './key.ts';
import { nonEmptyText } from './name-leaves.ts';
import { CPU_MAX, sizeSchema } from './sources.ts';

const stepSchema = z
  .strictObject({
    cpu: key(wholeNumber(1, CPU_MAX).prefault(1), 'Step between two vCPU counts.'),
    memory: key(bytes({ min: '1Mi' }).prefault('1Gi'), 'Step between two memory sizes.'),
  })
  .prefault({});

const sizeRangeSchema = z.strictObject({
  min: key(sizeSchema, 'The smallest machine.'),
  max: key(sizeSchema, 'The largest machine.'),
  step: key(stepSchema, 'Steps between `min` and `max`.'),
});

const singleSizeSchema = z
  .union([nonEmptyText(), sizeSchema])
  .meta({ 'x-forms': 'the name of a size, or a mapping with cpu, memory and disk' });

export const poolSizeSchema = z
  .union([
    nonEmptyText(),
    form(sizeSchema),
    z.array(singleSizeSchema).min(1),
    form(sizeRangeSchema),
  ])
  .meta({
    'x-forms':
      'the name of a size, a mapping with cpu, memory and disk, a list of those, or a mapping with min, max and step',
  });
