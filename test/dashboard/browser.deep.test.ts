/** The dashboard in a real browser, over a real service that fills its warehouse from a simulated upstream. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { raiseNotice } from '../../src/store/work/notice.ts';
import { barriersOf, complaintsOf, findBrowser, LOOKS, startBrowser, takePicture } from '../support/browser.ts';
import { createKey } from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { runCli } from '../support/program.ts';
import { createRelay, type Relay } from '../support/relay.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import { type SimulatedUpstream, startUpstream } from '../support/simulated-upstream.ts';

const EXECUTABLE = findBrowser();
const WAIT = { timeout: 60_000 };
/** A day whose candles are final. */
const RECENT = new Date(systemClock.now() - 10 * DAY).toISOString().slice(0, 10);

describe.skipIf(EXECUTABLE === null)('the dashboard in a browser', () => {
  let database: TestDatabase;
  let upstream: SimulatedUpstream;
  let relay: Relay;
  let service: ServiceProcess;
  let browser: Browser;
  let origin: string;
  let env: Record<string, string>;
  let context: BrowserContext;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    database = await createTestDatabase({ max: 2 });
    upstream = await startUpstream({ seed: 8, coins: 60, latencyMs: 20 });
    relay = await createRelay(database.url);
    env = {
      DATABASE_URL: relay.url,
      CHANDLER_BASE_URL: upstream.baseUrl,
      CHANDLER_PLAN: 'enterprise',
      CHANDLER_REQUESTS_PER_SECOND: '10',
    };
    service = await startServiceProcess('all', env);
    origin = String((await service.said(/^serving .* at /)).url);
    await service.said(/^ready/);
    browser = await startBrowser(EXECUTABLE!);
    await detached('btc-bitcoin', '--start', '-60d');
    const filled = async () => expect(await database.sql`select from market.candle`).not.toHaveLength(0);
    await vi.waitFor(filled, WAIT);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await relay?.close();
    await upstream?.close();
    await database?.drop();
  });
  beforeEach(async () => {
    context = await browser.newContext(LOOKS.light);
    page = await context.newPage();
    complaints = complaintsOf(page, origin);
  });
  afterEach(async () => {
    await context.close();
  });

  /** Records a backfill for the service. */
  async function detached(...args: readonly string[]): Promise<number> {
    const { out, err, code } = await runCli(['backfill', ...args, '--detach', '--yes', '--json'], env);
    expect([code, err]).toEqual([0, err]);
    return (JSON.parse(out) as { backfill: { id: number } }).backfill.id;
  }

  async function open(path: string): Promise<void> {
    await page.goto(`${origin}${path}`);
  }

  async function signIn(): Promise<void> {
    const { key } = await createKey(database.sql);
    await open('/ui/sign-in');
    await page.getByLabel('Operator').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Signed in with the key Ada').waitFor();
  }

  const SCREENS = [
    ...[
      '/',
      '/ui/coverage',
      '/ui/backfills?all=true',
      '/ui/backfills/1',
      '/ui/quota',
      '/ui/requests',
      '/ui/requests?id=1',
    ],
    ...[
      '/ui/notices',
      '/ui/keys',
      '/ui/system',
      '/ui/coins/btc-bitcoin',
      '/ui/coins/btc-bitcoin?interval=24h&at=RECENT',
    ],
    ...['/ui/search?q=e', '/ui/search?q=nobody-has-it', '/ui/sign-in', '/ui/do/pause?backfill=1', '/ui/no-such-page'],
  ];

  test.each(SCREENS)('%s passes the accessibility check and loads nothing from another site', async (path) => {
    for (const [look, options] of Object.entries(LOOKS)) {
      const seen = await browser.newContext(options);
      const one = await seen.newPage();
      const said = complaintsOf(one, origin);
      await one.goto(`${origin}${path.replace('RECENT', RECENT)}`);
      await one.waitForLoadState('load');
      expect([look, await barriersOf(one)]).toEqual([look, []]);
      // Nothing is wider than the screen.
      expect(await one.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
      expect(said.filter((text) => !text.includes('status of 40'))).toEqual([]);
      await takePicture(one, `${path.replaceAll(/[^\w]+/g, '-')}-${look}`);
      await seen.close();
    }
  });

  test('pauses, resumes and cancels a backfill with three buttons, and the page updates automatically', async () => {
    await signIn();
    const id = await detached('--top', '20', '--start', '-2000d', '--interval', '1h');
    await open('/');
    // Another open page, which nobody touches, shows it too.
    const other = await context.newPage();
    await other.goto(`${origin}/ui/backfills`);
    await other.getByRole('link', { name: `pause backfill ${id}` }).waitFor();
    await page.getByRole('link', { name: `pause backfill ${id}` }).click();
    await page.getByRole('button', { name: `Pause backfill ${id}` }).click();
    await page.getByText(`Backfill ${id} is paused.`).waitFor();
    await other.getByRole('link', { name: `resume backfill ${id}` }).waitFor();
    await page.getByRole('link', { name: `resume backfill ${id}` }).click();
    await page.getByRole('button', { name: `Resume backfill ${id}` }).click();
    await other.getByRole('link', { name: `pause backfill ${id}` }).waitFor();
    await page.getByRole('link', { name: `cancel backfill ${id}` }).click();
    // On a slow connection other visitors see what was done before its operator does.
    await page.route('**/ui/do/cancel**', async (route) => {
      if (route.request().method() !== 'POST') return route.fallback();
      const answer = await route.fetch({ maxRedirects: 0 });
      await other.getByText('No backfill is open.').waitFor();
      await route.fulfill({ response: answer });
    });
    await page.getByRole('button', { name: `Cancel backfill ${id}` }).click();
    await page.getByText(`Backfill ${id} is cancelled.`).waitFor();
    expect(complaints).toEqual([]);
  });

  test('shows the end of a backfill while the page stays open', async () => {
    await open('/ui/backfills?all=true');
    const id = await detached('eth-ethereum', '--start', '-40d');
    await page.getByRole('row', { name: new RegExp(`^${id} done`) }).waitFor();
  });

  test('repairs a gap from the map: the operator selects a box, sees the price, and the gap is filled', async () => {
    const { sql } = database;
    const gaps = () =>
      sql`select from market.gaps where coin_id = 'btc-bitcoin' and interval = '24h' and reason = 'not asked yet'`;
    await sql`select ops.uncover(id, now() - interval '40 days', now() - interval '20 days') from market.series
      where coin_id = 'btc-bitcoin' and interval = '24h'`;
    expect(await gaps()).toHaveLength(1);
    await signIn();
    await open('/ui/coverage?coin=btc-bitcoin&interval=24h');
    const map = page.locator('#map-canvas[data-drawn]');
    await map.waitFor();
    const box = (await map.boundingBox())!;
    const y = box.y + 32;
    await page.mouse.move(box.x + 200, y);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, y, { steps: 5 });
    await page.mouse.move(box.x + box.width - 10, y, { steps: 5 });
    await page.mouse.up();
    const told = (await page.locator('#map-selection').boundingBox())!;
    expect(told.y + told.height).toBeLessThanOrEqual(page.viewportSize()!.height + 1);
    await page.getByRole('link', { name: /What does it cost to fill/ }).click();
    await page.getByText(/It costs 1 request, done/).waitFor();
    await page.getByRole('button', { name: 'Send 1 request' }).click();
    await page.getByText(/Backfill \d+ is recorded: 1 request\./).waitFor();
    await expect.poll(gaps, WAIT).toHaveLength(0);
    await open('/ui/coverage?coin=btc-bitcoin&interval=24h');
    await page
      .locator('#coverage-rows')
      .getByText(/provisional/)
      .waitFor();
    expect(await page.locator('#coverage-rows').textContent()).not.toContain('not asked yet');
    expect(complaints).toEqual([]);
  });

  test('finds a coin by its old id and shows the story of a candle', async () => {
    const { sql } = database;
    await sql`insert into market.coin_rename (old_id, new_id, renamed_at, source) values ('xbt-old', 'btc-bitcoin', '2020-02-03', 'changelog')`;
    await open('/');
    await page.getByRole('searchbox').fill('xbt-old');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/coins\/xbt-old/);
    await page.getByText('is now btc-bitcoin').waitFor();

    await open('/ui/coins/btc-bitcoin');
    await page.getByRole('link', { name: RECENT }).click();
    await page.locator('#story').waitFor();
    expect(await page.locator('#story').textContent()).toMatch(await tellingOf(`${RECENT} 00:00Z`));

    // The same with a click on the chart. The line above the chart shows which candle lies below the pointer.
    await page.locator('#chart').scrollIntoViewIfNeeded();
    const chart = (await page.locator('#chart').boundingBox())!;
    const slotIn = async (readout: RegExp) => readout.exec((await page.locator('#chart-readout').textContent())!)?.[1];
    await expect.poll(() => slotIn(/^(\d{4}-\d\d-\d\d) 00:00Z {2}open/)).toBeDefined();
    // A slot may be empty, or its bar may be made of the finer candles that another test has fetched. Then the test takes the next slot to the right.
    let there: string | undefined;
    for (let step = 0; there === undefined || there === RECENT; step++) {
      await page.mouse.move(chart.x + chart.width / 3 + step, chart.y + chart.height / 3);
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
      there = await slotIn(/^(\d{4}-\d\d-\d\d) 00:00Z {2}open.* {2}final$/);
    }
    await page.mouse.down();
    await page.mouse.up();
    await page.waitForURL((url) => url.searchParams.get('at') === there);
    expect(await page.locator('#story').textContent()).toMatch(await tellingOf(`${there} 00:00Z`));
    expect(complaints).toEqual([]);

    /** The part that only the story of this candle has. */
    async function tellingOf(slot: string): Promise<RegExp> {
      const [candle] = await sql<{ open: number; close: number }[]>`
        select open, close from market.candles
        where coin_id = 'btc-bitcoin' and interval = '24h' and quote = 'usd' and open_time = ${slot}::timestamptz`;
      const { open, close } = candle!;
      return new RegExp(`^History of the slot ${slot}, 24h usd.*The slot is final: open ${open}, .*close ${close},`);
    }
  });

  test('says so when the answer with the bars is cut off, and requests earlier bars again after such an answer', async () => {
    let cutOff = 1;
    let earlier = 0;
    await page.route('**/candles?*', async (route) => {
      if (new URL(route.request().url()).searchParams.get('from') === '0') earlier++;
      if (cutOff-- > 0) await route.fulfill({ contentType: 'application/json', body: '{"from":' });
      else await route.continue();
    });
    const [from, to] = [30, 12].map((days) => new Date(systemClock.now() - days * DAY).toISOString().slice(0, 10));
    const path = `/ui/coins/btc-bitcoin?interval=24h&from=${from}&to=${to}`;
    await open(path);
    await page.getByText('The bars could not load.').waitFor();

    await open(path);
    await page.getByText(/^\d{4}-\d\d-\d\d 00:00Z {2}/).waitFor();
    cutOff = 1;
    await page.locator('#chart').focus();
    await expect
      .poll(async () => {
        await page.keyboard.press('-');
        return earlier;
      })
      .toBeGreaterThan(1);
    expect(complaints).toEqual([]);
  });

  test('prints the chart of a coin as a picture in light colours, and shows the chart again afterwards', async () => {
    await page.emulateMedia({ colorScheme: 'dark' });
    await open('/ui/coins/btc-bitcoin');
    await page.getByText(/^\d{4}-\d\d-\d\d 00:00Z {2}open/).waitFor();
    await page.evaluate(`addEventListener('beforeprint', () => {
      const picture = document.querySelector('#chart + canvas.on-paper');
      // In the corner below the axes there is nothing, and so no band of a gap.
      const corner = picture.getContext('2d').getImageData(picture.width - 3, picture.height - 3, 1, 1);
      window.seen = [...corner.data, picture.width > 300].join();
    }); 0`);
    await page.pdf({ format: 'A4' });
    expect(await page.evaluate('window.seen')).toBe('255,255,255,255,true');
    expect(await page.locator('canvas.on-paper').count()).toBe(0);
    expect(await page.locator('#chart').isVisible()).toBe(true);
    expect(complaints).toEqual([]);
  });

  test('shows ten thousand notices, some with hostile text, like any other page', async () => {
    const { sql } = database;
    const now = systemClock.now();
    await raiseNotice(
      sql,
      { event: 'stuck', topic: 'first', quietMs: 0, text: '<script>document.title="taken"</script>' },
      now,
    );
    await sql`insert into ops.notice (event, topic, text, raised_at) select event, 'copy ' || i, text || i, raised_at - i * interval '1 minute'
      from ops.notice, generate_series(1, 10000) i where topic = 'first'`;
    await open('/ui/notices');
    await page.getByText('<script>document.title="taken"</script>').first().waitFor();
    expect(await page.title()).toBe('Notices · Chandler');
    expect(await page.locator('tr').count()).toBeLessThan(1_000);
    expect(complaints).toEqual([]);
  });

  test('does not let a wrong key sign in', async () => {
    await open('/ui/sign-in');
    await page.getByLabel('Operator').fill('chandler_12345678_12345678901234567890123456789012');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('This is not a valid operator key').waitFor();
    expect(await context.cookies()).toEqual([]);
  });

  test('says so while the database is unavailable, and recovers', async () => {
    await open('/ui/backfills');
    await page.getByRole('heading', { name: 'Backfills' }).waitFor();
    relay.cut();
    await page.getByText('The database cannot be reached. This page shows older data').waitFor(WAIT);
    const fresh = await context.newPage();
    await fresh.goto(`${origin}/`);
    await fresh.getByRole('heading', { name: 'The database cannot be reached' }).waitFor(WAIT);
    relay.mend();
    await expect.poll(() => page.locator('#connection').isHidden(), WAIT).toBe(true);
    await fresh.getByRole('heading', { name: 'Needs attention' }).waitFor(WAIT);
  });

  test('says so while the service is gone, and finds it again', async () => {
    await open('/');
    // Not `waitForFunction`: the page's policy allows no script that we do not serve.
    await page.locator('body[data-followed="true"]').waitFor(WAIT);
    const port = new URL(origin).port;
    await service.stop();
    await page.getByText('No connection to Chandler').waitFor(WAIT);
    service = await startServiceProcess('all', { ...env, CHANDLER_LISTEN: `127.0.0.1:${port}` });
    await expect.poll(() => page.locator('#connection').isHidden(), WAIT).toBe(true);
  });
});
