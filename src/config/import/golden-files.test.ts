// SPDX-License-Identifier: Apache-2.0
// Imports a whole file of each system and compares the output. Review changes of the expected files carefully.
import { expect, it } from 'vitest';
import { renderImportReport } from './render-report.ts';
import { FIXTURES, importText, readFixture } from './testing/import-text.ts';

it.each(FIXTURES)('import of %s %s matches its expected files', async (system, name) => {
  const fileName = name.replace(/^.*\//, '');
  const { yaml, notes } = importText(system, readFixture(name), { fileName });
  await expect(yaml).toMatchFileSnapshot(`./fixtures/${name}.expected.yaml`);
  await expect(renderImportReport(notes)).toMatchFileSnapshot(
    `./fixtures/${name}.expected-notes.txt`,
  );
});
