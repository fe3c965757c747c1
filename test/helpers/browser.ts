/** A real Chromium, without windows, that opens the web pages and records everything that goes wrong in them. */
import assert from "node:assert/strict";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page, type ViewportSize } from "playwright-core";
import type { Member } from "./members.ts";

const flags = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const moreFlags = ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];
/** Generous: it only ends a hang. */
const patienceMs = 60_000;
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

export interface OpenOptions extends Omit<BrowserContextOptions, "viewport" | "colorScheme"> {
  readonly viewport?: ViewportSize;
  readonly colorScheme?: "light" | "dark";
  /** The member who is logged in; nobody if absent. */
  readonly member?: Member;
  /** Errors in the browser's log that the test causes on purpose. */
  readonly tolerates?: RegExp;
}

export class TestBrowser {
  readonly url: string;
  readonly #browser: Browser;
  readonly #problems: string[] = [];
  /** The pages in use, and what their logs may say. */
  readonly #used = new Map<Page, RegExp>();
  /** Windows as they usually are, for any test: a new one takes longer than most pages. */
  readonly #usual = new Set<Page>();

  private constructor(url: string, browser: Browser) {
    this.url = url;
    this.#browser = browser;
  }

  static async launch(url: string): Promise<TestBrowser> {
    return new TestBrowser(url, await chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: [...flags, ...moreFlags] }));
  }

  /** A window of a browser of its own: no cookies but the member's, nothing stored, and nothing moves that tests would wait for. */
  async open(path: string, options: OpenOptions = {}): Promise<Page> {
    const { member, tolerates = logOfStatus, viewport = { width: 1280, height: 800 }, colorScheme = "light", ...others } = options;
    const page = await this.#window({ viewport, ...others });
    this.#used.set(page, tolerates);
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    if (member) await page.context().addCookies([{ ...member.cookie, url: this.url, httpOnly: true, sameSite: "Strict" }]);
    await page.goto(path);
    return page;
  }

  async #window({ viewport, ...others }: OpenOptions): Promise<Page> {
    const isUsual = Object.keys(others).length === 0;
    const free = isUsual ? [...this.#usual].find((page) => !this.#used.has(page)) : undefined;
    if (free) return free;
    const context = await this.#browser.newContext({ baseURL: this.url, viewport, ...others } as BrowserContextOptions);
    context.setDefaultTimeout(patienceMs);
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: this.url });
    const page = await context.newPage();
    if (isUsual) this.#usual.add(page);
    this.#listen(page);
    return page;
  }

  /** Watches a page that another one has opened. */
  watch(page: Page): void {
    this.#used.set(page, logOfStatus);
    this.#listen(page);
  }

  /** Collects errors of scripts, refusals of the content security policy, dialogs and missing files. */
  #listen(page: Page): void {
    const tolerates = (text: string): boolean => this.#used.get(page)?.test(text) ?? true;
    const note = (problem: string): void => void (this.#used.has(page) && this.#problems.push(`${page.url()}: ${problem}`));
    page.on("pageerror", (error) => note(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !tolerates(message.text())) note(message.text());
    });
    page.on("dialog", (dialog) => {
      note(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("response", (response) => {
      const { pathname } = new URL(response.url());
      const problem = `${response.status()} for ${pathname}`;
      if (response.status() >= 500 || (response.status() >= 400 && !pathname.startsWith("/v1/") && !tolerates(problem))) note(problem);
    });
  }

  /** Closes or empties all windows. Fails with everything that went wrong in any of them; injected scripts would have set `__xss`. */
  async closePages(): Promise<void> {
    const injected: string[] = [];
    const pages = [...this.#used.keys()];
    for (const page of pages) if (!page.isClosed() && (await page.evaluate("typeof window.__xss")) !== "undefined") injected.push(page.url());
    this.#used.clear();
    for (const page of pages) if (!(this.#usual.has(page) && (await isEmptied(page)))) await this.#close(page);
    assert.deepEqual(injected, [], "a script was injected");
    assert.deepEqual(this.#problems.splice(0), []);
  }

  async #close(page: Page): Promise<void> {
    this.#usual.delete(page);
    await page.context().close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** Whether nothing is left in a window of what was in it. */
async function isEmptied(page: Page): Promise<boolean> {
  if (page.isClosed() || page.context().pages().length > 1) return false;
  try {
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await page.evaluate("localStorage.clear(); sessionStorage.clear()");
    await page.goto("about:blank");
    await page.context().clearCookies();
    return true;
  } catch {
    return false; // Pages of the browser's own have no storage.
  }
}

/** Resolves when the page's heading says this. */
export async function heading(page: Page, text: string | RegExp): Promise<void> {
  await page.locator("h1").filter({ hasText: text }).waitFor();
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
