// SPDX-License-Identifier: Apache-2.0
// The dashboard in a real browser, served by `pvescaler serve` on both simulators.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoSite, startDemoSite } from '../../scripts/demo/site.ts';
import { CHROMIUM, LIMIT_MS } from './install-chromium.ts';

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { html: string }[];
  }[];
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let site: DemoSite;
let browser: Browser;

beforeAll(async () => {
  site = await startDemoSite({ speed: 500 });
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    timeout: LIMIT_MS,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
  });
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

async function openPage(
  options: { readonly width?: number; readonly colorScheme?: 'light' | 'dark' } = {},
): Promise<Page> {
  // axe runs as a script of the test, which the policy of the page forbids.
  const context = await browser.newContext({
    bypassCSP: true,
    viewport: { width: options.width ?? 1_400, height: 900 },
    colorScheme: options.colorScheme ?? 'light',
  });
  context.setDefaultTimeout(LIMIT_MS);
  const page = await context.newPage();
  await page.goto(site.dashboardUrl);
  await page.getByText('live', { exact: true }).waitFor();
  return page;
}

function createPods(name: string, replicas: number, cpu: string): void {
  const selector = { matchLabels: { app: name } };
  site.kubernetes.create('apps/v1', 'deployments', {
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector,
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [
            {
              name: 'main',
              image: 'example/app',
              resources: { requests: { cpu, memory: '256Mi' } },
            },
          ],
        },
      },
    },
  });
}

describe('the dashboard', () => {
  it('shows pods, machines and reasons without a reload', async () => {
    const page = await openPage();
    createPods('web', 6, '900m');
    createPods('huge', 1, '400');
    await page.locator('#machines .is-ready').nth(1).waitFor();
    expect(await page.locator('#hosts .segment.machine').count()).toBeGreaterThanOrEqual(4);
    expect(await page.locator('#hosts').innerText()).toContain('lab/pve1');
    expect(await page.locator('#machines').innerText()).toMatch(/ready after .+ s, most of it/);
    const huge = page.locator('#pending li', { hasText: 'default/huge' });
    await huge.waitFor();
    expect(await huge.innerText()).toMatch(/^default\/huge\S* fits no pool: .*cpu/);
    expect(await page.locator('#journal').innerText()).toContain('ScaleUp');
    expect(await page.locator('#plots figure').count()).toBe(5);
  });

  it('leaves space on a host for guests that do not run, as placement does', async () => {
    const page = await openPage();
    const host = page.locator('#hosts .host', { hasText: 'lab/pve3' });
    await host.locator('[title="VM 102 win11 (not running): 8 GiB"]').waitFor();
    // A container of 2 GiB runs beside it.
    expect(await host.innerText()).toContain('10 GiB others');
  });

  it('filters machines, and links them to Proxmox', async () => {
    const page = await openPage();
    await page.locator('#machines .is-ready').first().waitFor();
    const link = page.locator('#machines a').first();
    expect(await link.getAttribute('href')).toMatch(/^https:.+qemu%2F12\d\d$/);
    await page.getByLabel('Filter').fill('no such machine');
    await expect.poll(() => page.locator('#machines li').count()).toBe(0);
    expect(await page.locator('#machine-count').innerText()).toMatch(/^0 of \d/);
  });

  it('acts only with the token, by keyboard too', async () => {
    const page = await openPage();
    const pause = page.getByRole('button', { name: 'Pause for an hour: pool large' });
    await pause.focus();
    await page.keyboard.press('Enter');
    await page.getByText('Enter the token first').waitFor();
    await page.getByLabel('Token for actions').fill('wrong');
    await pause.click();
    await page.getByText('the token is wrong').waitFor();
    await page.getByLabel('Token for actions').fill(site.dashboardToken);
    await pause.click();
    await page.getByText('pool large is paused').waitFor();
    await page.getByRole('button', { name: 'Resume: pool large' }).click();
    await pause.waitFor();
  });

  it('shows what became of an action where the page is scrolled to', async () => {
    const page = await openPage();
    await page.setViewportSize({ width: 600, height: 300 });
    await page.getByLabel('Token for actions').fill('wrong');
    const pause = page.getByRole('button', { name: 'Pause for an hour: pool large' });
    await pause.evaluate((button) => button.scrollIntoView({ block: 'end' }));
    await pause.press('Enter');
    await page.getByText('the token is wrong').waitFor();
    expect(await page.evaluate('scrollY')).toBeGreaterThan(0);
    const box = await page.locator('#result').boundingBox();
    expect(box?.y).toBeGreaterThanOrEqual(0);
    expect(box?.y).toBeLessThan(300);
  });

  it('shows machines in a color of their own when the system forces colors', async () => {
    const page = await openPage();
    await page.emulateMedia({ forcedColors: 'active' });
    const colors = await page.evaluate<readonly string[]>(
      "[...document.querySelectorAll('#phase-legend .swatch')].map((one) => getComputedStyle(one).background)",
    );
    expect(new Set(colors).size).toBe(colors.length);
  });

  it.each([
    ['light', 1_400],
    ['dark', 1_400],
    ['light', 360],
    ['dark', 360],
  ] as const)(
    'violates no rule of axe in %s at %d pixels, and fits',
    async (colorScheme, width) => {
      const page = await openPage({ colorScheme, width });
      await page.locator('#machines li').first().waitFor();
      await page.evaluate(AXE);
      const { violations } = await page.evaluate<AxeResult>('axe.run()');
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
        width,
      );
    },
  );
});
