// SPDX-License-Identifier: Apache-2.0
// How much of the page changes at 1,000 machines. What a change costs follows from that on any computer; seconds do not.
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CHROMIUM, LIMIT_MS } from './install-chromium.ts';
import { type LargeFleet, MACHINES, serveLargeFleet } from './large-fleet.ts';

/** Number of the phase before `ready`. */
const JOINING = 6;
const READY = 7;
/** Of the first state; the ones with the highest numbers are the newest, and at the top. */
const JOINING_MACHINES = Array.from({ length: 20 }, (_, index) => MACHINES - 1 - index);

/** Runs in the page. An observer is called after each task, so it sees at once what a frame has changed. */
const COUNT = `
  const fresh = () => ({ rows: 0, mostInAFrame: 0, touched: new Set() });
  let seen = fresh();
  globalThis.counts = {
    take() {
      const taken = { ...seen, touched: [...seen.touched] };
      seen = fresh();
      return taken;
    },
  };
  new MutationObserver((records) => {
    const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
    const rows = added.filter((node) => node.parentElement?.id === 'machines').length;
    seen.rows += rows;
    seen.mostInAFrame = Math.max(seen.mostInAFrame, rows);
    for (const { target } of records) {
      const element = target instanceof Element ? target : target.parentElement;
      const row = element?.closest('#machines > li');
      if (row) seen.touched.add(row.id);
    }
  }).observe(document, { childList: true, subtree: true, attributes: true, characterData: true });
`;

let browser: Browser;
let fleet: LargeFleet;
let page: Page;

beforeAll(async () => {
  fleet = await serveLargeFleet(new Map(JOINING_MACHINES.map((index) => [index, JOINING])));
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    timeout: LIMIT_MS,
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const context = await browser.newContext({ viewport: { width: 1_400, height: 900 } });
  context.setDefaultTimeout(LIMIT_MS);
  page = await context.newPage();
  await page.addInitScript({ content: COUNT });
  await page.goto(fleet.url);
  await page
    .locator('#machines > li')
    .nth(MACHINES - 1)
    .waitFor({ state: 'attached' });
});
afterAll(async () => {
  await browser?.close();
  await fleet?.close();
});

interface Counts {
  readonly rows: number;
  readonly mostInAFrame: number;
  readonly touched: number;
}

/** Since the last call. */
async function takeCounts(): Promise<Counts> {
  const { touched, ...counts } = await page.evaluate<
    Omit<Counts, 'touched'> & { touched: string[] }
  >('counts.take()');
  return { ...counts, touched: touched.length };
}

async function waitForReady(machines: number): Promise<void> {
  await expect.poll(() => page.locator('#machines .is-ready').count()).toBe(machines);
}

describe('the dashboard with 1,000 machines', () => {
  it('fills the page in many frames', async () => {
    const { rows, mostInAFrame } = await takeCounts();
    expect(rows).toBe(MACHINES);
    expect(mostInAFrame).toBeLessThanOrEqual(100);
  });

  it('touches only the machines that changed, and moves only those', async () => {
    const changed = JOINING_MACHINES.slice(0, 10);
    await fleet.change(new Map(changed.map((index) => [index, READY])));
    await waitForReady(MACHINES - 10);
    await page.getByText('machine 1010 of pool workers was requested').waitFor();
    const { rows, touched } = await takeCounts();
    expect(rows).toBeLessThanOrEqual(changed.length);
    // The times of the others that are being created grow meanwhile.
    expect(touched).toBeLessThanOrEqual(JOINING_MACHINES.length);
  });

  it('keeps the focus on a row whose neighbors move', async () => {
    const name = page.locator('#machines > li').nth(15);
    const id = await name.getAttribute('id');
    await name.focus();
    await fleet.change(new Map([[JOINING_MACHINES[12]!, READY]]));
    await waitForReady(MACHINES - 9);
    expect(await page.evaluate('document.activeElement.id')).toBe(id);
  });

  it('creates the reasons of a plan when they are opened, and keeps them open', async () => {
    const reasons = page.locator('#plan details li');
    expect(await reasons.count()).toBe(0);
    const summary = page.locator('#plan summary', { hasText: '200 refused' });
    await summary.focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => reasons.count()).toBe(200);
    await fleet.change(new Map());
    await page.getByText('machine 1030 of pool workers was requested').waitFor();
    await expect.poll(() => page.locator('#plan h3').first().innerText()).toContain(':03)');
    expect(await reasons.count()).toBe(200);
    expect(await page.evaluate('document.activeElement.textContent')).toMatch(/^200 refused/);
  });

  it('shows the limits of a pool, also of a disabled one', async () => {
    const limits = page.locator('#pools [data-label=Limits]');
    expect(await limits.allInnerTexts()).toEqual(['0 – 600', '0 – 0']);
  });

  it('finds machines by words', async () => {
    await page.getByLabel('Filter').fill('pve3 large');
    await expect.poll(() => page.locator('#machines > li').count()).toBeLessThan(MACHINES);
    await page.getByLabel('Filter').fill('');
    await page
      .locator('#machines > li')
      .nth(MACHINES - 1)
      .waitFor({ state: 'attached' });
  });
});
