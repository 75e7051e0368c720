/** A real browser: the system's Chromium, driven through playwright-core. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
/** Screenshots, which CI keeps. */
const PICTURES = path.join(import.meta.dirname, '../../coverage/screens');

/** Null when there is none; in CI that is an error. `TEST_CHROMIUM` names one outside the PATH. */
export function findBrowser(): string | null {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const files = folders.flatMap((folder) => NAMES.map((name) => path.join(folder, name)));
  const found = [process.env.TEST_CHROMIUM ?? '', ...files].find((file) => file !== '' && existsSync(file));
  if (found === undefined && process.env.CI !== undefined)
    throw new Error('no Chromium: install the Debian package chromium, or name one with TEST_CHROMIUM');
  return found ?? null;
}

export function startBrowser(executablePath: string): Promise<Browser> {
  // A container may not allow a sandbox, and only our own pages are opened.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

/** Settings with which people see the same screen differently. */
export const LOOKS: Readonly<Record<'light' | 'dark' | 'narrow', BrowserContextOptions>> = {
  light: { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  narrow: { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
};

/** What a page reports in its console: blocked by the policy, not found, thrown. Also requests to other origins. */
export function complaintsOf(page: Page, origin: string): string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:'))
      complaints.push(`asks ${request.url()}`);
  });
  return complaints;
}

export async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: true });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What is hard or impossible to use for some people (WCAG 2.2 AA), one line each. */
export async function barriersOf(page: Page): Promise<string[]> {
  // Not as a script of the page: its policy allows only scripts that we serve.
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: unknown): Promise<AxeResults> } };
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const { violations } = await axe.run({ runOnly: { type: 'tag', values: tags } });
    return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(' | ')}`);
  });
}

type AxeResults = {
  readonly violations: readonly {
    readonly id: string;
    readonly help: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
};
