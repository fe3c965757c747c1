/** One browser, two tabs: a page belongs to the account that it was opened for, whoever has logged in elsewhere since. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { dialogOf, heading, logIn, type OpenOptions, press, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { type Member, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { prompt } from "../../helpers/terminals.ts";

const { url } = sharedStack();
const pictures = process.env.SCREENSHOTS;
const otherLoggedIn = "Another account is logged in";

const ann = await fixture(signUp(url, "Ann"));
const bob = await fixture(signUp(url, "Bob"));
await Promise.all([ann, bob].map((member) => member.call("POST", "/v1/sandboxes/create", { image: "default" })));
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

const countOf = async (member: Member): Promise<number> => (await member.call<{ data: unknown[] }>("GET", "/v1/sandboxes/list")).data.length;

/** A page of Ann's, and a second tab of the same browser that still shows the log-in page. */
async function twoTabs(path: string, options: OpenOptions = {}): Promise<[first: Page, second: Page]> {
  const first = await browser.open(`/login?next=${encodeURIComponent(path)}`, options);
  const second = await first.context().newPage();
  browser.watch(second);
  await second.goto("/login");
  await heading(second, "Log in to Sandgate");
  await logIn(first, ann.email, ann.password);
  await first.getByRole("navigation", { name: "Main" }).waitFor();
  return [first, second];
}

async function enter(page: Page, { email, password }: Member): Promise<void> {
  await logIn(page, email, password);
  await heading(page, "Overview");
}

test("what is confirmed on a page of one account is not done to another that has logged in since, and the page says so", async () => {
  const [first, second] = await twoTabs("/sandboxes");
  // The list asks again and again, and would notice first.
  await press(first, "Delete all");
  await first.route("**/v1/sandboxes/list*", () => {});
  await enter(second, bob);
  await press(dialogOf(first), "Delete all");
  await heading(first, otherLoggedIn);
  if (pictures) await first.screenshot({ path: `${pictures}/two-tabs.png` });
  for (const { email } of [bob, ann]) await first.getByText(email, { exact: true }).waitFor();
  assert.deepEqual([await countOf(ann), await countOf(bob)], [1, 1], "nothing is deleted for anybody");
  await first.unrouteAll();
  await first.getByRole("button", { name: `Go on as ${bob.email}` }).click();
  await heading(first, "Overview");
});

test("a page that is only looked at notices by itself", async () => {
  const [first, second] = await twoTabs("/sandboxes");
  await enter(second, bob);
  await heading(first, otherLoggedIn);
});

test("a terminal of the account that was logged in before ends, and its page says why", async () => {
  const { data } = await ann.call<{ data: { id: string }[] }>("GET", "/v1/sandboxes/list");
  const [first, second] = await twoTabs(`/sandboxes/${data[0]?.id}/terminal`, { tolerates: /^Failed to load resource|^WebSocket connection to/ });
  await prompt(first);
  await enter(second, bob);
  await heading(first, otherLoggedIn);
});

test("control: who logs in again to the same account goes on in the other tab", async () => {
  const [first, second] = await twoTabs("/settings/keys");
  await enter(second, ann);
  await press(first, "Create key");
  await press(dialogOf(first), "Create key");
  await first.getByTestId("new-key").waitFor();
});

test("after a log-out in another tab the page asks to log in, and the way back shows nothing", async () => {
  const [first, second] = await twoTabs("/sandboxes");
  await second.goto("/sandboxes");
  await heading(second, "Sandboxes");
  await second.goto("/docs");
  await press(first, "Log out");
  await heading(first, "Log in to Sandgate");
  await second.goBack();
  await heading(second, "Log in to Sandgate");
  // As the browser does with a page that it keeps for the way back.
  await first.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
  assert.equal(await first.evaluate("document.body.textContent"), "");
  await first.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
  await heading(first, "Log in to Sandgate");
});
