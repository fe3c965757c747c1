/** Logging in and out, and changing the password, in real browsers. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { heading, logIn, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { changeAccount, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url, natsUrl } = sharedStack();

const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

test("a wrong password is said to be wrong, and the right one then opens the page that was asked for", async () => {
  const member = await signUp(url);
  const page = await browser.open("/sandboxes");
  await heading(page, "Log in to Sandgate");
  assert.equal(new URL(page.url()).searchParams.get("next"), "/sandboxes");
  await logIn(page, member.email, "not the password");
  await page.getByRole("alert").getByText("Wrong e-mail or password.").waitFor();
  assert.equal(new URL(page.url()).pathname, "/login");
  await logIn(page, member.email, member.password);
  await heading(page, "Sandboxes");
  assert.equal(new URL(page.url()).pathname, "/sandboxes");
});

test("who has logged out is asked to log in, and is back with the password", async () => {
  const member = await signUp(url);
  const page = await browser.open("/", { member });
  await heading(page, "Overview");
  await page.getByRole("button", { name: "Log out" }).click();
  await heading(page, "Log in to Sandgate");
  await page.goto("/settings/keys");
  await heading(page, "Log in to Sandgate");
  await logIn(page, member.email, member.password);
  await heading(page, "Settings");
});

test("a new password ends all other sessions, and this one goes on", async () => {
  const member = await signUp(url);
  const here = await browser.open("/settings/account", { member });
  const elsewhere = await browser.open("/login");
  await logIn(elsewhere, member.email, member.password);
  await heading(elsewhere, "Overview");

  const changed = `${member.password} again`;
  await here.getByLabel("Current password").fill("not the password");
  await here.getByLabel("New password", { exact: true }).fill(changed);
  await here.getByLabel("New password again").fill(changed);
  await here.getByRole("button", { name: "Change password" }).click();
  await here.getByRole("alert").getByText("The current password is wrong.").waitFor();
  await here.getByLabel("Current password").fill(member.password);
  await here.getByRole("button", { name: "Change password" }).click();
  await here.getByText("The password is changed.").waitFor();

  await elsewhere.getByRole("link", { name: "Sandboxes" }).click();
  await heading(elsewhere, "Log in to Sandgate");
  await logIn(elsewhere, member.email, member.password);
  await elsewhere.getByRole("alert").waitFor();
  await logIn(elsewhere, member.email, changed);
  await heading(elsewhere, "Sandboxes");
  await here.getByRole("link", { name: "API keys" }).click();
  await here.getByRole("button", { name: "Create key" }).click();
  await here.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await here.getByTestId("new-key").waitFor();
});

test("passwords that are short or not repeated are refused before they are sent", async () => {
  const member = await signUp(url);
  const page = await browser.open("/settings/account", { member });
  await page.getByLabel("Current password").fill(member.password);
  await page.getByLabel("New password", { exact: true }).fill("short");
  await page.getByLabel("New password again").fill("other");
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("Use at least 10 characters.").waitFor();
  await page.getByText("The two are not the same.").waitFor();
  assert.equal(await page.getByLabel("New password", { exact: true }).getAttribute("aria-invalid"), "true");
});

test("who signs up with an address that is taken gets in with its password only", async () => {
  const member = await signUp(url);
  const page = await browser.open("/signup");
  await page.getByLabel("E-mail").fill(member.email);
  await page.getByLabel("Password").fill(`${member.password} or not`);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("alert").getByText("may have an account already").waitFor();
  await page.getByLabel("Password").fill(member.password);
  await page.getByRole("button", { name: "Create account" }).click();
  await heading(page, "Overview");
});

for (const next of ["//example.com/", "https://example.com/", "/\\example.com", "javascript:window.__xss=1", "/%2F/example.com"]) {
  test(`after the log-in nobody is sent to ${next}`, async () => {
    const member = await signUp(url);
    const page = await browser.open(`/login?next=${encodeURIComponent(next)}`);
    await logIn(page, member.email, member.password);
    await page.getByRole("navigation", { name: "Main" }).waitFor();
    assert.equal(new URL(page.url()).origin, url);
  });
}

test("when the server comes back after a loss of connection, the page says nothing any more", async () => {
  const member = await signUp(url);
  const page = await browser.open("/settings/keys", { member, tolerates: /net::ERR_FAILED/ });
  await page.getByText("No API keys yet").waitFor();
  await page.route("**/v1/**", (route) => route.abort());
  await page.route("**/healthz", (route) => route.abort());
  await page.getByRole("link", { name: "Sandboxes" }).click();
  await page.getByText("Connection lost. Reconnecting…").waitFor();
  await page.unrouteAll();
  await page.getByText("Connection lost. Reconnecting…").waitFor({ state: "detached" });
  await page.getByText("No sandboxes").waitFor();
});

test("a suspended account gets a notice in place of its pages, and may log in as somebody else", async () => {
  const [member, other] = await Promise.all([signUp(url), signUp(url)]);
  const page = await browser.open("/", { member });
  await heading(page, "Overview");
  await changeAccount(natsUrl, member, { suspended: true });
  await page.getByRole("link", { name: "Sandboxes" }).click();
  await heading(page, "Account suspended");
  await page.reload();
  await heading(page, "Account suspended");
  await page.getByRole("button", { name: "Log in with another account" }).click();
  await logIn(page, member.email, member.password);
  await page.getByRole("alert").getByText("This account is suspended.").waitFor();
  await logIn(page, other.email, other.password);
  await heading(page, "Overview");
});

test("a list that may not be asked for at the moment stays, says so, and goes on when the server allows it", async () => {
  const member = await signUp(url);
  const page = await browser.open("/sandboxes", { member });
  await page.getByText("No sandboxes").waitFor();
  const error = { code: "rate_limited", message: "too many requests", request_id: "req_1" };
  await page.route("**/v1/sandboxes/list*", (route) => route.fulfill({ status: 429, headers: { "retry-after": "1" }, json: { error } }));
  await page.getByText("Not live at the moment: too many requests").waitFor();
  await page.unrouteAll();
  await page.getByText("Not live at the moment").waitFor({ state: "hidden" });
  await page.getByText("No sandboxes").waitFor();
});
