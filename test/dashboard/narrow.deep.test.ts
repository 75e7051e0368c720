/** The screens with lists on a phone and on paper, in a real browser, without scripts, which change neither. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { barriersOf, findBrowser, startBrowser } from '../support/browser.ts';
import { createKey, createTestDashboard, ORIGIN, type TestDashboard } from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { coinNamed } from '../support/stored-answers.ts';
import { seedSeries } from '../support/warehouse.ts';

const EXECUTABLE = findBrowser();
const SCREENS = ['/', '/ui/backfills?all=true', '/ui/requests', '/ui/quota', '/ui/system', '/ui/keys'];
/** A sheet of A4 without its margins, in CSS pixels. */
const SHEET = Math.floor(((210 - 2 * 12) / 25.4) * 96);

describe.skipIf(EXECUTABLE === null)('the lists', () => {
  let database: TestDatabase;
  let dashboard: TestDashboard;
  let browser: Browser;

  beforeAll(async () => {
    database = await createTestDatabase();
    const { sql } = database;
    const series = await seedSeries(sql, {
      ...{ coinId: 'btc-bitcoin', interval: '24h', covered: [], candles: [] },
      wanted: [{ from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 0, 11) }],
    });
    await createKey(sql, { name: `A name that is as long as one may be, ${'with-one-part-of-it '.repeat(3)}` });
    await sql`
      insert into ops.backfill (requested_at, finished_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids, message)
      select now(), case when state = 'failed' then now() end, state, '{}', tstzrange('2020-01-01', '2021-01-01'), '24h', 'usd', 1234567, true,
        '{btc-bitcoin}', 'no answer' from unnest('{queued,paused,failed}'::text[]) state`;
    await sql`
      insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, backfill_id, attempt, status, outcome, duration_ms, rows,
        stored, revised, quarantined, bytes, body_sha256, message)
      select at, at, 'a', 'ohlcv', ${series}, tstzrange('2020-01-01 06:00', '2021-01-01 18:00'), 1, 2, 404, 'not found', 12345, 5000, 5000, 5000,
        3, 700000, sha256('a'), ${'no such coin and nothing else '.repeat(10)}
      from generate_series(1, 60) i, lateral (select ${systemClock.now()}::timestamptz - i * interval '1 minute' as at) t`;
    dashboard = await createTestDashboard(database.url, { states: () => [] });
    browser = await startBrowser(EXECUTABLE!);
  });
  afterAll(async () => {
    await browser?.close();
    await dashboard?.close();
    await database?.drop();
  });

  /** A page whose responses come from the dashboard itself. */
  async function open(path: string, options: BrowserContextOptions): Promise<Page> {
    const context = await browser.newContext({ ...options, javaScriptEnabled: true });
    await context.route('**/*', async (route) => {
      const url = new URL(route.request().url());
      if (url.pathname === '/ui/events' || url.pathname.endsWith('.js')) return route.abort();
      const answer = await dashboard.ask(`${url.pathname}${url.search}`);
      const headers = Object.fromEntries(answer.headers);
      return route.fulfill({ status: answer.status, headers, body: await answer.text() });
    });
    const page = await context.newPage();
    await page.goto(`${ORIGIN}${path}`);
    return page;
  }

  test.each(SCREENS)('of %s fit a phone, show every button, and pass the accessibility check', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open(path, { viewport: { width: 390, height: 844 }, colorScheme });
      const beyond = await page.evaluate<string[]>(`(() => {
        const isWide = (table) => table.scrollWidth > table.clientWidth;
        const isHidden = (one) => one.checkVisibility() && one.getBoundingClientRect().right > document.documentElement.clientWidth;
        const all = (selector) => [...document.querySelectorAll(selector)];
        return [...all('.table').filter(isWide), ...all('a, button').filter(isHidden)].map((one) => one.outerHTML.slice(0, 200));
      })()`);
      expect(beyond).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(await barriersOf(page)).toEqual([]);
      await page.context().close();
    }
  });

  test.each([
    '/ui/coins/harry-potter',
    '/ui/requests?coin=harry-potter',
    '/ui/search?q=harry',
    '/ui/requests?coin=harry',
  ])('of %s fit a phone, although the name of a coin is one long word', async (path) => {
    const name = 'HarryPotterObamaSonicTrumpHomerSimpson777Inu'.repeat(2);
    await recordCoins(
      database.sql,
      ['harry-potter', 'harry-other'].map((id) => ({ ...coinNamed(id), name })),
      systemClock.now(),
    );
    const page = await open(path, { viewport: { width: 390, height: 844 } });
    expect(await page.getByText(name).count()).toBeGreaterThan(0);
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.context().close();
  });

  test('drawn as blocks on a phone are still tables with column names for a screen reader', async () => {
    const page = await open('/ui/keys', { viewport: { width: 390, height: 844 } });
    const row = page.getByRole('row', { name: /operator/ });
    expect(await row.getByRole('cell').count()).toBe(10);
    expect(await page.getByRole('columnheader', { name: 'This month' }).count()).toBe(1);
    // A sighted reader sees the column name before the value.
    const label = await page.evaluate<string>(
      `getComputedStyle(document.querySelector('td[data-label="For"]'), '::before').content`,
    );
    expect(label).toContain('For');
    await page.context().close();
  });

  test.each(SCREENS)('of %s on paper are black on white, complete, and without controls', async (path) => {
    const page = await open(path, { viewport: { width: SHEET, height: 1000 }, colorScheme: 'dark' });
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    const paper = await page.evaluate(`(() => {
      const all = (selector) => [...document.querySelectorAll(selector)];
      return {
        text: getComputedStyle(document.body).color,
        page: getComputedStyle(document.documentElement).backgroundColor,
        isCut: document.documentElement.scrollWidth > innerWidth,
        cut: all('.table').filter((one) => one.scrollWidth > one.clientWidth).length,
        useless: all('nav, form, button, .button, input, select, summary').filter((one) => one.checkVisibility()).map((one) => one.outerHTML),
        links: all('td a:not(.button)').filter((one) => getComputedStyle(one).textDecorationLine !== 'underline').length,
      };
    })()`);
    expect(paper).toEqual({
      ...{ text: 'rgb(0, 0, 0)', page: 'rgb(255, 255, 255)', isCut: false, cut: 0, useless: [], links: 0 },
    });
    await page.context().close();
  });
});
