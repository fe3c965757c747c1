/** Every page in light and dark, wide and narrow. With SCREENSHOTS=<folder> pictures of them are kept there. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { heading, looks, TestBrowser } from "../../helpers/browser.ts";
import { atEnd, fixture } from "../../helpers/fixture.ts";
import { changeAccount, type Member, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url, natsUrl } = sharedStack();
const folder = process.env.SCREENSHOTS;
/** Has keys and sandboxes. */
/** Has just signed up. */
let sandbox = "";

if (folder) mkdirSync(folder, { recursive: true });
const member = await fixture(signUp(url, "Grace Hopper"));
const beginner = await signUp(url);
// Four times all pages are more than the first tier allows in a minute.
await changeAccount(natsUrl, member, { tier: "enterprise" });
for (const name of ["CI pipeline", "Agents in production", "A key with a name that is much longer than the room that there is for it"]) {
  await member.call("POST", "/v1/account/keys", { name });
}
const { data } = await member.call<{ data: { id: string }[] }>("GET", "/v1/account/keys");
await member.call("DELETE", `/v1/account/keys/${data[0]?.id}`);
for (const name of ["nightly-report", "notebook-lisa", "a-name-with-as-many-characters-as-the-service-allows-it-to-have"]) {
  ({ id: sandbox } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", name }));
}
for (const command of ["python3 -c 'print(6*7)'", "ls /missing", "seq 1 40"]) {
  await member.call("POST", `/v1/sandboxes/${sandbox}/execute`, { command });
}
await makeSnapshots();
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());
atEnd(() => member.call("DELETE", "/v1/snapshots/delete-all"));

/** Of sandboxes that are still there and of one that is not. */
async function makeSnapshots(): Promise<void> {
  const { id: gone } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", name: "last-week" });
  await member.call("POST", `/v1/sandboxes/${gone}/execute`, { command: "head -c 3M /dev/urandom > /root/data" });
  await member.call("DELETE", `/v1/sandboxes/${gone}/delete`, { create_snapshot: true, snapshot_name: "last-week-final" });
  for (const name of ["before-the-upgrade", "a-snapshot-with-as-many-characters-as-the-service-allows-a-name"]) {
    await member.call("POST", `/v1/sandboxes/${sandbox}/snapshot`, { name, quick: name.startsWith("a") });
  }
}

const opened = (label: string) => async (page: Page) => {
  await page.getByRole("button", { name: label, exact: true }).first().click();
  await page.getByRole("dialog").waitFor();
};

interface Shot {
  readonly name: string;
  readonly path: () => string;
  readonly who?: () => Member;
  /** Brings the page into the state that is looked at. */
  readonly settle: (page: Page) => Promise<unknown>;
}

const one = () => member;
const shots: readonly Shot[] = [
  { name: "login", path: () => "/login", settle: (page) => heading(page, "Log in to Sandgate") },
  { name: "signup", path: () => "/signup", settle: (page) => heading(page, "Create your account") },
  { name: "first-steps", path: () => "/", who: () => beginner, settle: (page) => page.getByText("First steps").waitFor() },
  { name: "overview", path: () => "/", who: one, settle: (page) => page.getByText("Use by key").waitFor() },
  { name: "sandboxes", path: () => "/sandboxes", who: one, settle: (page) => page.getByText("nightly-report").waitFor() },
  { name: "sandboxes-empty", path: () => "/sandboxes", who: () => beginner, settle: (page) => page.getByText("No sandboxes").waitFor() },
  { name: "new-sandbox", path: () => "/sandboxes?new", who: one, settle: (page) => page.getByRole("dialog").waitFor() },
  { name: "console", path: () => `/sandboxes/${sandbox}`, who: one, settle: runSomething },
  { name: "console-earlier", path: () => `/sandboxes/${sandbox}`, who: one, settle: (page) => page.locator(".run summary").nth(1).click() },
  { name: "usage-empty", path: () => `/sandboxes/${sandbox}#usage`, who: one, settle: withoutSamples },
  { name: "usage", path: () => `/sandboxes/${sandbox}#usage`, who: one, settle: (page) => page.getByText("Processes").waitFor() },
  { name: "files", path: () => `/sandboxes/${sandbox}#files`, who: one, settle: (page) => page.getByText("Choose a file").waitFor() },
  { name: "logs", path: () => `/sandboxes/${sandbox}#logs`, who: one, settle: (page) => page.locator(".log-entry summary").first().click() },
  { name: "snapshots", path: () => "/snapshots", who: one, settle: (page) => page.getByText("before-the-upgrade").waitFor() },
  { name: "snapshots-empty", path: () => "/snapshots", who: () => beginner, settle: (page) => page.getByText("No snapshots yet").waitFor() },
  { name: "restore", path: () => "/snapshots", who: one, settle: opened("Restore") },
  { name: "take-snapshot", path: () => `/sandboxes/${sandbox}`, who: one, settle: opened("Snapshot") },
  { name: "taking-snapshot", path: () => `/sandboxes/${sandbox}`, who: one, settle: beginSnapshot },
  { name: "clone", path: () => `/sandboxes/${sandbox}`, who: one, settle: opened("Clone") },
  { name: "fork", path: () => `/sandboxes/${sandbox}`, who: one, settle: opened("Fork") },
  { name: "delete-with-snapshot", path: () => `/sandboxes/${sandbox}`, who: one, settle: openDelete },
  { name: "keys", path: () => "/settings/keys", who: one, settle: (page) => page.getByText("2 of 5 active").waitFor() },
  { name: "new-key", path: () => "/settings/keys", who: one, settle: makeKey },
  { name: "revoke", path: () => "/settings/keys", who: one, settle: (page) => page.getByRole("button", { name: "Revoke" }).first().click() },
  { name: "account", path: () => "/settings/account", who: one, settle: (page) => page.getByText("Grace Hopper").waitFor() },
];

/** One that looks like a key and opens nothing: an account may have only a few. */
async function makeKey(page: Page): Promise<void> {
  const json = { id: "key_1", name: "CI pipeline", prefix: "sg_Xk2b9Qw", created_at: new Date().toISOString(), key: `sg_${"Xk2b9QwT7v".repeat(5)}` };
  await page.route("**/v1/account/keys", (route) => (route.request().method() === "POST" ? route.fulfill({ status: 201, json }) : route.continue()));
  await opened("Create key")(page);
  await page.keyboard.press("Enter");
  await page.getByTestId("new-key").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("has not been copied").waitFor();
}

async function withoutSamples(page: Page): Promise<void> {
  await page.route("**/status?*", async (route) => route.fulfill({ json: { ...(await (await route.fetch()).json()), history: [] } }));
  await page.getByRole("radio", { name: "6 hours" }).check();
  await page.getByText("No samples").first().waitFor();
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

/** Its answer does not come. */
async function beginSnapshot(page: Page): Promise<void> {
  await page.route("**/snapshot", () => {});
  await opened("Snapshot")(page);
  await page.keyboard.press("Enter");
  await page
    .getByRole("dialog")
    .getByText(/^\d+ s$/)
    .waitFor();
}

async function openDelete(page: Page): Promise<void> {
  await opened("Delete")(page);
  await page.getByLabel("Take a snapshot first").check();
}

async function runSomething(page: Page): Promise<void> {
  await page.getByLabel("Command", { exact: true }).fill("for n in 1 2 3; do echo \"step $n of 3\"; done; echo 'a warning' >&2");
  await page.keyboard.press("Enter");
  await page.locator(".run").first().getByText("exit code 0").waitFor();
}

for (const { colorScheme, viewport } of looks([1280, 390], folder)) {
  for (const { name, path, who, settle } of shots) {
    test(`${name}, ${colorScheme}, ${viewport.width} wide`, async () => {
      const page = await browser.open(path(), { colorScheme, viewport, ...(who ? { member: who() } : {}) });
      await settle(page);
      const tooWide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      assert.ok(tooWide <= 0, `${tooWide} px do not fit`);
      const hidden = await page.evaluate<number>(
        "Math.max(0, ...[...document.querySelectorAll('.table-frame')].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))",
      );
      assert.equal(hidden, 0, `${hidden} px of a table are out of sight`);
      if (folder) await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${viewport.width}.png`), animations: "disabled" });
    });
  }
}
