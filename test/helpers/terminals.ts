/** A terminal on the web page, as its user sees and uses it. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { until } from "./until.ts";

const seen = ".terminal-panel:not([hidden])";

/** The lines in view, without what is empty at their ends and below them. */
export async function linesOf(page: Page): Promise<string[]> {
  const lines = await page.evaluate<string[]>(`[...document.querySelectorAll('${seen} .xterm-rows > div')].map((row) => row.textContent)`);
  const trimmed = lines.map((line) => line.replaceAll("\u00a0", " ").trimEnd());
  return trimmed.slice(0, trimmed.findLastIndex((line) => line !== "") + 1);
}

/** Resolves when a line in view is, or matches, this. */
export async function line(page: Page, wanted: string | RegExp): Promise<string> {
  let lines: string[] = [];
  const fits = (text: string): boolean => (typeof wanted === "string" ? text === wanted : wanted.test(text));
  try {
    return await until(`a line ${wanted}`, async () => {
      lines = await linesOf(page);
      return lines.find(fits);
    });
  } catch (cause) {
    throw new Error(`no line ${wanted} in:\n${lines.join("\n")}`, { cause });
  }
}

/** Resolves when the shell waits for a command: its prompt is the last line. */
export async function prompt(page: Page): Promise<void> {
  await until("a prompt", async () => /[#$]$/.test((await linesOf(page)).at(-1) ?? ""));
}

/** Types a command where the focus is, and Enter. */
export async function enter(page: Page, command: string): Promise<void> {
  await page.keyboard.type(command);
  await page.keyboard.press("Enter");
}

/** Everything that the terminal keeps, by selecting and copying it. */
export async function everything(page: Page): Promise<string> {
  await page.evaluate("navigator.clipboard.writeText('')");
  await page.locator(`${seen} .screen`).click();
  await page.keyboard.press("Control+Shift+A");
  await page.keyboard.press("Control+Shift+C");
  const text = await until("the copy", async () => (await page.evaluate<string>("navigator.clipboard.readText()")) || false);
  await page.keyboard.press("Escape");
  return text;
}

/** Fails unless there is one line of each of these numbers, in order. */
export function expectWhole(text: string, pattern: RegExp, from: number, to: number): void {
  const numbers = [...text.matchAll(pattern)].map(([, number]) => Number(number));
  const wanted = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  assert.deepEqual(numbers, wanted);
}
