// A page in headless Chromium, without a network.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

export const CHROMIUM: string | undefined = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .flatMap((folder) => NAMES.map((name) => path.join(folder, name)))
  .find((file) => existsSync(file));

/** Why tests of pages cannot run here. */
export const noChromium: string | false = CHROMIUM === undefined && 'Chromium is not installed (apt-get install -y chromium)';

export interface OpenPage {
  readonly page: Page;
  /** What went wrong in the page, and what it wanted to load. */
  readonly complaints: readonly string[];
}

export async function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] });
}

/** Opens the file, and resolves when the page has read its data. */
export async function openPage(browser: Browser, file: string): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 860 }, colorScheme: 'light', offline: true });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => complaints.push(message.text()));
  page.on('request', (request) => request.url() === `file://${file}` || complaints.push(request.url()));
  await page.goto(`file://${file}`);
  await page.waitForSelector('html[data-state=ready]');
  return { page, complaints };
}
