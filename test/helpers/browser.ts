/** A real Chromium, without windows, that opens the web pages and records everything that goes wrong in them. */
import assert from "node:assert/strict";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import type { Member } from "./members.ts";

const flags = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const moreFlags = ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];
/** Generous: it only ends a hang. */
const patienceMs = 30_000;
/** The browser itself logs answers with an error status; handling those is up to the pages. */
const logOfStatus = /^Failed to load resource: the server responded with a status of 4\d\d/;

/** How a page may look: with pictures to be taken, all; else each scheme and each width once, which tests go through. */
export function looks(
  widths: readonly number[],
  pictures: string | undefined,
): { colorScheme: "light" | "dark"; viewport: { width: number; height: number } }[] {
  const schemes = ["light", "dark"] as const;
  const all = widths.flatMap((width, row) => schemes.map((colorScheme, column) => ({ row, column, look: { colorScheme, viewport: viewportOf(width) } })));
  return all.filter(({ row, column }) => pictures !== undefined || row % schemes.length === column).map(({ look }) => look);
}

const viewportOf = (width: number) => ({ width, height: width < 500 ? 844 : 800 });

export interface OpenOptions extends BrowserContextOptions {
  /** The member who is logged in; nobody if absent. */
  readonly member?: Member;
  /** Errors in the browser's log that the test causes on purpose. */
  readonly tolerates?: RegExp;
}

export class TestBrowser {
  readonly url: string;
  readonly #browser: Browser;
  readonly #problems: string[] = [];
  readonly #pages: Page[] = [];

  private constructor(url: string, browser: Browser) {
    this.url = url;
    this.#browser = browser;
  }

  static async launch(url: string): Promise<TestBrowser> {
    return new TestBrowser(url, await chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: [...flags, ...moreFlags] }));
  }

  /** A window of a browser of its own: no cookies but the member's, nothing stored, and nothing moves that tests would wait for. */
  async open(path: string, { member, tolerates = logOfStatus, ...options }: OpenOptions = {}): Promise<Page> {
    const usual = { baseURL: this.url, viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" } as const;
    const context = await this.#browser.newContext({ ...usual, ...options });
    context.setDefaultTimeout(patienceMs);
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: this.url });
    if (member) await context.addCookies([{ ...member.cookie, url: this.url, httpOnly: true, sameSite: "Strict" }]);
    const page = await context.newPage();
    this.watch(page, tolerates);
    await page.goto(path);
    return page;
  }

  /** Collects errors of scripts, refusals of the content security policy, dialogs and missing files. */
  watch(page: Page, tolerates = logOfStatus): void {
    this.#pages.push(page);
    const note = (problem: string): void => void this.#problems.push(`${page.url()}: ${problem}`);
    page.on("pageerror", (error) => note(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !tolerates.test(message.text())) note(message.text());
    });
    page.on("dialog", (dialog) => {
      note(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("response", (response) => {
      const { pathname } = new URL(response.url());
      const problem = `${response.status()} for ${pathname}`;
      if (response.status() >= 500 || (response.status() >= 400 && !pathname.startsWith("/v1/") && !tolerates.test(problem))) note(problem);
    });
  }

  /** Closes all windows. Fails with everything that went wrong in any of them; injected scripts would have set `__xss`. */
  async closePages(): Promise<void> {
    const injected: string[] = [];
    for (const page of this.#pages.splice(0)) {
      if (page.isClosed()) continue;
      if ((await page.evaluate("typeof window.__xss")) !== "undefined") injected.push(page.url());
      await page.context().close();
    }
    assert.deepEqual(injected, [], "a script was injected");
    assert.deepEqual(this.#problems.splice(0), []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** Resolves when the page's heading says this. */
export async function heading(page: Page, text: string | RegExp): Promise<void> {
  await page.getByRole("heading", { level: 1, name: text }).waitFor();
}

/** Logs in by the form of the page that is open. */
export async function logIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** What pages and tests have most to do with: dialogs, buttons by their name, rows of tables. */
export const dialogOf = (page: Page): Locator => page.getByRole("dialog");
export const press = (place: Page | Locator, name: string): Promise<void> => place.getByRole("button", { name, exact: true }).click();
export const rowOf = (page: Page, text: string): Locator => page.getByRole("row").filter({ hasText: text });
/** Not by its role, which it has only while it is seen: it leaves the page a moment after that. */
export const closed = (page: Page): Promise<void> => page.locator("dialog").waitFor({ state: "detached" });
