/**
 * The dashboard over 50,000 series × 10 years, in Chromium and from a real process: how long answers take, when the coverage map is drawn,
 * how smoothly it moves, and how much memory the tab needs.
 */
import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findBrowser, startBrowser } from '../support/browser.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../support/many-series.ts';
import { type RunningCli, startCli } from '../support/program.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const SERIES = Number(process.env.BENCH_SERIES ?? 50_000);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const ANSWERS = Number(process.env.BENCH_ANSWERS ?? 200);
const COINS = Math.ceil(SERIES / SERIES_OF_A_COIN);
const SORTS = ['rank', 'name', 'worst'] as const;
/** Parts that the ids of all coins contain: different filters that select the same series. */
const PARTS_OF_ALL = ['c', 'co', 'coi', 'coin', '-c', '-co', '-coin', '-coin-'] as const;

const ANSWER_MS = 300;
const DRAWN_MS = 500;
const FRAMES = 60;
/** A screen of 60 Hz shows 59.9 frames per second. */
const FRAMES_MEASURED = 59;
const TAB_MB = 200;

let database: TestDatabase;
let ui: RunningCli;
let browser: Browser;
let base = '';
beforeAll(async () => {
  database = await createTestDatabase({ max: 4 });
  const { sql } = database;
  await makeManySeries(sql, { coins: COINS, requests: 86_400 });
  await sql`update market.series set wanted = wanted + tstzmultirange(tstzrange('2016-01-01', '2020-01-01'))`;
  await sql`vacuum full analyze market.series`;
  ui = await startCli(['ui', '--port', '0'], { DATABASE_URL: database.url });
  base = await new Promise<string>((resolve, reject) => {
    let text = '';
    ui.process.stdout!.on('data', (part: Buffer) => {
      text += part;
      const found = /is at (http:\S+)\/ until/.exec(text);
      if (found) resolve(found[1]!);
    });
    ui.ended.then(({ err }) => reject(new Error(`chandler ui ended: ${err}`)), reject);
  });
  const chromium = findBrowser();
  if (chromium === null)
    throw new Error('no Chromium: install the Debian package chromium, or name one with TEST_CHROMIUM');
  browser = await startBrowser(chromium);
});
afterAll(async () => {
  await browser?.close();
  ui?.process.kill('SIGTERM');
  await ui?.ended;
  await database?.drop();
});

const p95 = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1]!;
const figure = (ms: readonly number[], most: number) =>
  `p50 ${median(ms).toFixed(0)} ms, p95 ${p95(ms).toFixed(0)} ms ${verdict(p95(ms) <= most)}`;

async function get(path: string): Promise<void> {
  const answer = await fetch(`${base}${path}`);
  await answer.arrayBuffer();
  expect(answer.status, path).toBe(200);
}

/** The times of answers to one address after the other, at changing places. */
async function answers(pathOf: (i: number) => string): Promise<number[]> {
  const took: number[] = [];
  for (let i = 0; i < ANSWERS; i++) took.push(await timed(() => get(pathOf(i))));
  return took;
}

async function openMap(page: Page, query = '?sort=worst'): Promise<number> {
  await page.goto(`${base}/ui/coverage${query}`, { waitUntil: 'load' });
  await page.waitForSelector('#map-canvas[data-drawn]');
  // As text: the code for the browser has types of its own.
  return page.evaluate<number>(
    "Number(document.querySelector('#map-canvas').dataset.drawn) - performance.getEntriesByType('navigation')[0].loadEventStart",
  );
}

/** Milliseconds from frame to frame while `move` runs. */
async function framesDuring(page: Page, move: () => Promise<void>): Promise<number[]> {
  await page.evaluate(
    'window.seen = []; requestAnimationFrame(function frame(at) { window.seen.push(at); requestAnimationFrame(frame); }); 0',
  );
  await move();
  const at = await page.evaluate<number[]>('window.seen');
  return at.slice(1).map((one, i) => one - at[i]!);
}

async function dragBesides(page: Page): Promise<void> {
  const box = (await page.locator('#map-canvas').boundingBox())!;
  const y = box.y + 200;
  await page.keyboard.down('Shift');
  for (let turn = 0; turn < 3; turn++) {
    await page.mouse.move(box.x + 1_000, y);
    await page.mouse.down();
    for (let x = 1_000; x > 220; x -= 6) await page.mouse.move(box.x + x, y);
    await page.mouse.up();
  }
  await page.keyboard.up('Shift');
}

async function wheel(page: Page): Promise<void> {
  const box = (await page.locator('#map-canvas').boundingBox())!;
  await page.mouse.move(box.x + 600, box.y + 200);
  for (let i = 0; i < 120; i++) await page.mouse.wheel(0, 90);
}

/** The memory of the tab's process, with its share of memory that processes share. */
async function tabMegabytes(): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const tabs = processInfo.filter(({ type }) => type === 'renderer');
  const pss = tabs.map(({ id }) =>
    Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${id}/smaps_rollup`, 'utf8'))![1]),
  );
  return Math.max(...pss) / 1000;
}

function smooth(frames: readonly number[]): string {
  const rate = 1000 / (frames.reduce((sum, one) => sum + one, 0) / frames.length);
  const slow = frames.filter((one) => one > 1.5 * (1000 / FRAMES)).length;
  return `${rate.toFixed(1)} frames/s ${verdict(rate >= FRAMES_MEASURED)}; ${slow} of ${frames.length} frames came late`;
}

it(`shows the coverage of ${thousands(SERIES)} series`, async () => {
  const lines: [string, string][] = [];
  const window = 'from=2006-01-01&to=2036-01-01&step=900000&rows=100';
  const place = (i: number) => (i * 7_919) % (SERIES - 100);
  for (const sort of SORTS) {
    const cold: number[] = [];
    for (const part of PARTS_OF_ALL)
      cold.push(await timed(() => get(`/ui/coverage/data?sort=${sort}&${window}&coin=${part}`)));
    lines.push([`data, ${sort}, order not known (≤ ${ANSWER_MS} ms)`, figure(cold, ANSWER_MS)]);
    const data = await answers((i) => `/ui/coverage/data?sort=${sort}&${window}&row=${place(i)}`);
    lines.push([`data, ${sort} (≤ ${ANSWER_MS} ms)`, figure(data, ANSWER_MS)]);
    const page = await answers((i) => `/ui/coverage?sort=${sort}&row=${place(i)}`);
    lines.push([`page, ${sort} (≤ ${ANSWER_MS} ms)`, figure(page, ANSWER_MS)]);
  }
  const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
  const drawn: number[] = [];
  for (let round = 0; round < ROUNDS; round++) drawn.push(await openMap(page));
  lines.push([`map drawn after load (≤ ${DRAWN_MS} ms)`, `${spread(drawn, 0)} ms ${verdict(p95(drawn) <= DRAWN_MS)}`]);
  lines.push(['panning in time', smooth(await framesDuring(page, () => dragBesides(page)))]);
  await openMap(page);
  lines.push(['scrolling through rows', smooth(await framesDuring(page, () => wheel(page)))]);
  const megabytes = await tabMegabytes();
  lines.push([`memory of the tab (≤ ${TAB_MB} MB)`, `${megabytes.toFixed(1)} MB ${verdict(megabytes <= TAB_MB)}`]);
  console.info(table(`${thousands(COINS * SERIES_OF_A_COIN)} series of ${thousands(COINS)} coins`, lines));
});
