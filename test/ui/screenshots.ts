// SPDX-License-Identifier: Apache-2.0
// `npm run screenshots`: writes the pictures of the dashboard that the documentation shows into docs/images/, from
// `pvescaler serve` on both simulators.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { type DemoSite, startDemoSite } from '../../scripts/demo/site.ts';
import { createNeverFitting, createReport, createServices } from '../../scripts/demo/workloads.ts';
import { systemClock } from '../../src/system/index.ts';
import { CHROMIUM, setup } from './install-chromium.ts';

const FOLDER = join(import.meta.dirname, '../../docs/images');
const TIMEOUT_MS = 120_000;
/** For some samples in the plots. */
const HISTORY_MS = 40_000;
const PICTURES = [
  { name: 'dashboard', width: 1_280, height: 1_010, colorScheme: 'light' },
  { name: 'dashboard-dark', width: 1_280, height: 1_010, colorScheme: 'dark' },
  { name: 'dashboard-phone', width: 390, height: 844, colorScheme: 'light' },
] as const;

async function take(site: DemoSite): Promise<void> {
  await using browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const pages: Page[] = [];
  for (const { width, height, colorScheme } of PICTURES) {
    const viewport = { width, height };
    // The policy of the page forbids the style that hides the demo's own section.
    const context = await browser.newContext({ bypassCSP: true, viewport, colorScheme });
    const page = await context.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    await page.goto(site.dashboardUrl);
    await page.addStyleTag({ content: '#demo { display: none }' });
    pages.push(page);
  }
  const [first] = pages;
  createServices(site.kubernetes);
  await first?.locator('#machines .is-ready').nth(3).waitFor();
  await systemClock.sleep(HISTORY_MS);
  createReport(site.kubernetes, 500);
  createNeverFitting(site.kubernetes);
  await first?.locator('#pending li', { hasText: 'default/huge' }).waitFor();
  await first?.locator('#machines .is-booting, #machines .is-joining').first().waitFor();
  for (const [index, { name }] of PICTURES.entries())
    await pages[index]?.screenshot({ path: join(FOLDER, `${name}.png`) });
}

setup();
mkdirSync(FOLDER, { recursive: true });
await using site = await startDemoSite({ speed: 8 }).then((started) => ({
  ...started,
  [Symbol.asyncDispose]: () => started.close(),
}));
await take(site);
for (const { name } of PICTURES) console.log(`wrote docs/images/${name}.png`);
