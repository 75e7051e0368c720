/** The coverage map in a real browser: touched, in links, and on paper. */
import type { Browser, BrowserContextOptions, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { complaintsOf, findBrowser, LOOKS, startBrowser } from '../support/browser.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type RunningCli, startCli } from '../support/program.ts';
import { makeEveryReason } from './coverage-world.ts';

const EXECUTABLE = findBrowser();
/** Like a phone. */
const PHONE: BrowserContextOptions = { ...LOOKS.narrow, hasTouch: true, isMobile: true };

describe.skipIf(EXECUTABLE === null)('the coverage map', () => {
  let database: TestDatabase;
  let ui: RunningCli;
  let browser: Browser;
  let origin = '';
  beforeAll(async () => {
    database = await createTestDatabase({ max: 2 });
    await makeEveryReason(database.sql);
    ui = await startCli(['ui', '--port', '0'], { DATABASE_URL: database.url });
    origin = await new Promise<string>((resolve, reject) => {
      let text = '';
      ui.process.stdout!.on('data', (part: Buffer) => {
        text += part;
        const found = /is at (http:\S+)\/ until/.exec(text);
        if (found) resolve(found[1]!);
      });
      ui.ended.then(({ err }) => reject(new Error(`chandler ui ended: ${err}`)), reject);
    });
    browser = await startBrowser(EXECUTABLE!);
  });
  afterAll(async () => {
    await browser?.close();
    ui?.process.kill('SIGTERM');
    await ui?.ended;
    await database?.drop();
  });
  let complaints: string[] = [];
  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    expect(complaints).toEqual([]);
  });

  async function openMap(path: string, look: BrowserContextOptions): Promise<Page> {
    const context = await browser.newContext(look);
    const page = await context.newPage();
    complaints = complaintsOf(page, origin);
    await page.goto(`${origin}${path}`);
    await page.locator('#map-canvas[data-drawn]').waitFor();
    return page;
  }

  const fieldOf = (page: Page, name: string) => new URL(page.url()).searchParams.get(name);
  const shownDays = (page: Page) =>
    (Date.parse(fieldOf(page, 'to') ?? '') - Date.parse(fieldOf(page, 'from') ?? '')) / 86_400_000;
  const SIXTY_DAYS = (() => {
    const at = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
    return `from=${at(60)}&to=${at(0)}`;
  })();

  test('zooms with two fingers, moves with one, and sets the cursor with a tap', async () => {
    const page = await openMap(`/ui/coverage?${SIXTY_DAYS}`, PHONE);
    const fingers = await page.context().newCDPSession(page);
    await page.locator('#map-scroll').scrollIntoViewIfNeeded();
    const box = (await page.locator('#map-canvas').boundingBox())!;
    const [x, y] = [box.x + 220, box.y + 80];

    await page.touchscreen.tap(x, y);
    await expect.poll(() => fieldOf(page, 'cursor')).toMatch(/^\d+,\d{4}-/);
    expect(await page.locator('#map-cell').textContent()).toMatch(/24h usd/);

    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
    ] as const) {
      const before = shownDays(page);
      const pinch = (part: number): [Finger, Finger] => {
        const apart = 25 + 50 * part;
        return [
          { x: x - apart * dx, y: y - apart * dy },
          { x: x + apart * dx + 3, y: y + apart * dy },
        ];
      };
      await touch(fingers, pinch);
      // On a busy machine the page may write the address during the gesture too.
      await expect.poll(() => shownDays(page) / before).toBeCloseTo(between(pinch(0)) / between(pinch(1)), 2);
    }
    const [from, days] = [fieldOf(page, 'from')!, shownDays(page)];
    await touch(fingers, (part) => [{ x: x + 100 * part, y }]);
    await expect.poll(() => fieldOf(page, 'from')! < from).toBe(true);
    expect(shownDays(page)).toBeCloseTo(days, 3);
    // The browser itself has not zoomed, and nothing was selected.
    expect(await page.evaluate('visualViewport.scale')).toBe(1);
    expect(fieldOf(page, 'selected')).toBeNull();
  });

  test('lets a finger scroll the page when all rows of the map are visible', async () => {
    const page = await openMap('/ui/coverage?coin=holes', PHONE);
    const fingers = await page.context().newCDPSession(page);
    await page.locator('#map-scroll').scrollIntoViewIfNeeded();
    const before = await page.evaluate<number>('scrollY');
    const box = (await page.locator('#map-canvas').boundingBox())!;
    await touch(fingers, (part) => [{ x: box.x + 220, y: box.y + 100 - 150 * part }]);
    await expect.poll(() => page.evaluate<number>('scrollY')).toBeGreaterThan(before + 50);
  });

  test('keeps its selection in the address, with the same series in any order', async () => {
    const page = await openMap(`/ui/coverage?sort=name&${SIXTY_DAYS}`, LOOKS.light);
    const box = (await page.locator('#map-canvas').boundingBox())!;
    // Broken and Closed are the first two by name.
    await page.mouse.move(box.x + 600, box.y + 30);
    await page.mouse.down();
    // In one step: on a busy machine the page would write the address during the move too.
    await page.mouse.move(box.x + 900, box.y + 50);
    await page.mouse.up();
    await expect.poll(() => fieldOf(page, 'selected')).toMatch(/^\d+,\d+,\d{4}-/);
    const told = async (one: Page) => {
      const place = one.locator('#map-selection');
      await place.getByText(/^Selected/).waitFor();
      return [await place.textContent(), await place.getByRole('link').first().getAttribute('href')];
    };
    const first = await told(page);
    expect(first[0]).toMatch(/^Selected: BROKEN, CLOSED, /);
    expect(first[1]).toMatch(/^\/ui\/do\/backfill\?coin=broken-coin&coin=closed-coin&/);
    const selection = fieldOf(page, 'selected');
    const cell = await page.locator('#map-cell').textContent();

    const copied = await openMap(page.url().slice(origin.length), LOOKS.light);
    expect(await told(copied)).toEqual(first);
    expect(await copied.locator('#map-cell').textContent()).toBe(cell);
    await copied.waitForTimeout(700);
    expect(copied.url()).toBe(page.url());

    // By rank there are other rows between them.
    const ranked = await openMap(page.url().slice(origin.length).replace('sort=name', 'sort=rank'), LOOKS.light);
    expect((await told(ranked))[0]).toMatch(/^Selected: BROKEN, ODD, UNKNOWN, CLOSED, /);
    await ranked.locator('#map-scroll').focus();
    await ranked.keyboard.press('Escape');
    await expect.poll(() => fieldOf(ranked, 'selected')).toBeNull();

    const other = await openMap(`/ui/coverage?coin=holes&selected=${selection}`, LOOKS.light);
    await other.getByText('The address selects a series that the filters exclude').waitFor();
    expect(await other.locator('#map-selection').isVisible()).toBe(false);
  });

  test('is printed black on white, as wide as the sheet, and without its controls', async () => {
    const page = await openMap('/ui/coverage?sort=name', LOOKS.dark);
    // The browser has drawn the map when it reports that the drawing is done.
    await page.evaluate(`{
      const canvas = document.querySelector('#map-canvas');
      const corner = () => {
        const pen = document.createElement('canvas').getContext('2d');
        pen.drawImage(canvas, 0, 0);
        return [canvas.clientWidth, ...pen.getImageData(3, 3, 1, 1).data].join();
      };
      window.seen = [corner()];
      for (const event of ['beforeprint', 'afterprint']) addEventListener(event, () => window.seen.push(corner()));
    } 0`);
    await page.pdf({ format: 'A4' });
    const [screen, paper, after] = await page.evaluate<string[]>('window.seen');
    expect(paper).toBe('680,255,255,255,255');
    expect(screen).not.toMatch(/255,255,255,255$/);
    expect(after).toBe(screen);
    await page.emulateMedia({ media: 'print' });
    for (const hidden of ['nav', '.map-tools', '#coverage-filters', 'form.search', 'footer'])
      expect([hidden, await page.locator(hidden).first().isVisible()]).toEqual([hidden, false]);
    await page.getByText('Sorted by: name.').waitFor();
    expect(await page.locator('.legend').isVisible()).toBe(true);
  });
});

type Finger = { readonly x: number; readonly y: number };

const between = ([one, other]: readonly [Finger, Finger]) => Math.hypot(one.x - other.x, one.y - other.y);

/** Fingers that move along their way from part 0 to part 1. */
async function touch(session: CDPSession, at: (part: number) => readonly Finger[]): Promise<void> {
  const send = (type: 'touchStart' | 'touchMove' | 'touchEnd', points: readonly Finger[]) =>
    session.send('Input.dispatchTouchEvent', { type, touchPoints: points.map((point, id) => ({ ...point, id })) });
  await send('touchStart', at(0));
  for (let step = 1; step <= 10; step++) await send('touchMove', at(step / 10));
  await send('touchEnd', []);
}
