// SPDX-License-Identifier: Apache-2.0
// A whole file of each system, and what becomes of it. Read the difference critically before accepting it.
import { expect, it } from 'vitest';
import { renderImportReport } from './render-report.ts';
import { FIXTURES, importText, readFixture } from './testing/import-text.ts';

it.each(FIXTURES)('%s: %s', async (system, name) => {
  const fileName = name.replace(/^.*\//, '');
  const { yaml, notes } = importText(system, readFixture(name), { fileName });
  await expect(yaml).toMatchFileSnapshot(`./fixtures/${name}.expected.yaml`);
  await expect(renderImportReport(notes)).toMatchFileSnapshot(
    `./fixtures/${name}.expected-notes.txt`,
  );
});
