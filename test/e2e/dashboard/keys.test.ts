/** API keys from the first visit to their end, in a real browser. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Api } from "../../helpers/api.ts";
import { closed, heading, TestBrowser } from "../../helpers/browser.ts";
import { expectError, expectOk } from "../../helpers/expect.ts";
import { fixture } from "../../helpers/fixture.ts";
import { newcomer, signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";
import { until } from "../../helpers/until.ts";

const { url } = sharedStack();

const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

test("somebody signs up, makes a key, uses it, revokes it, and it works no more", async () => {
  const { email, password } = newcomer();
  const page = await browser.open("/signup");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Create account" }).click();
  await heading(page, "Overview");
  await page.getByRole("heading", { name: "First steps" }).waitFor();

  await page.getByRole("link", { name: "Settings" }).click();
  await heading(page, "Settings");
  await page.getByText("No API keys yet").waitFor();
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByLabel("Name").fill("CI pipeline");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const shown = page.getByTestId("new-key");
  const apiKey = (await shown.textContent()) ?? "";
  assert.match(apiKey, /^sg_[A-Za-z0-9_-]{40,}$/);
  assert.equal(await page.evaluate("document.activeElement.getAttribute('aria-label')"), "Copy key");
  await page.keyboard.press("Enter");
  await until("the key is in the clipboard", async () => (await page.evaluate("navigator.clipboard.readText()")) === apiKey);
  await page.getByRole("button", { name: "Done" }).click();
  await closed(page);
  assert.ok(!(await page.content()).includes(apiKey), "the key stays in the page");

  const api = new Api({ url, apiKey });
  expectOk(await api.call("GET", "/v1/sandboxes/list"));
  const row = page.getByRole("row").filter({ hasText: "CI pipeline" });
  await row.getByText(apiKey.slice(0, 6)).last().waitFor();
  await row.getByRole("button", { name: "Revoke" }).click();
  const prefix = (await page.getByRole("dialog").locator("code").textContent()) ?? "";
  assert.ok(prefix.length > 3 && apiKey.startsWith(prefix.replace("…", "")), `the question names ${prefix}`);
  await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
  await row.getByText("revoked").waitFor();
  await page.getByText("0 of 5 active").waitFor();
  const refused = await until("the key is refused", async () => {
    const answer = await api.call("GET", "/v1/sandboxes/list");
    return answer.status === 401 && answer;
  });
  expectError(refused, "unauthorized", "This API key has been revoked.");
});

test("a new key that was not copied is not lost by Enter, Escape, the cross or a click beside it", async () => {
  const member = await signUp(url);
  const page = await browser.open("/settings/keys", { member });
  await page.evaluate("navigator.clipboard.writeText('')");
  await page.getByRole("button", { name: "Create key" }).click();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Your new API key" });
  const key = await page.getByTestId("new-key").textContent();
  const stays = async (): Promise<void> => {
    await dialog.getByRole("alert").getByText("has not been copied").waitFor();
    assert.equal(await page.getByTestId("new-key").textContent(), key);
    assert.equal(await page.evaluate("document.activeElement.getAttribute('aria-label')"), "Copy key");
  };
  for (let times = 0; times < 3; times++) await page.keyboard.press("Escape");
  await stays();
  await dialog.getByRole("button", { name: "Close" }).click();
  await stays();
  await page.mouse.click(5, 5);
  await stays();
  await page.keyboard.press("Enter");
  await until("the key is in the clipboard", async () => (await page.evaluate("navigator.clipboard.readText()")) === key);
  assert.ok(await dialog.isVisible(), "Enter has only copied");
  await page.keyboard.press("Escape");
  await closed(page);
});

test("a key is kept when the question about it is answered with no", async () => {
  const member = await signUp(url);
  await member.call("POST", "/v1/account/keys", { name: "kept" });
  const page = await browser.open("/settings/keys", { member });
  await page.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("1 of 5 active").waitFor();
  const { data } = await member.call<{ data: { revoked_at: string | null }[] }>("GET", "/v1/account/keys");
  assert.deepEqual(
    data.map(({ revoked_at }) => revoked_at),
    [null],
  );
});

test("at the maximum no further key can be asked for", async () => {
  const member = await signUp(url);
  for (let index = 0; index < 5; index++) await member.call("POST", "/v1/account/keys", { name: `key ${index}` });
  const page = await browser.open("/settings/keys", { member });
  await page.getByText("5 of 5 active").waitFor();
  assert.ok(await page.getByRole("button", { name: "Create key" }).isDisabled());
});

test("a refusal by the server is shown with its request id, and the dialog stays", async () => {
  const member = await signUp(url);
  const page = await browser.open("/settings/keys", { member });
  await page.getByRole("button", { name: "Create key" }).click();
  for (let index = 0; index < 5; index++) await member.call("POST", "/v1/account/keys", { name: `key ${index}` });
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const alert = page.getByRole("dialog").getByRole("alert");
  assert.match((await alert.textContent()) ?? "", /req_[0-9a-z]{26}/);
});

test("revoked keys fill pages, and what is active is counted on all of them", async () => {
  const member = await signUp(url);
  await member.call("POST", "/v1/account/keys", { name: "the first" });
  for (let index = 0; index < 20; index++) {
    const { id } = await member.call<{ id: string }>("POST", "/v1/account/keys", { name: `key ${index}` });
    await member.call("DELETE", `/v1/account/keys/${id}`);
  }
  const page = await browser.open("/settings/keys", { member });
  await page.getByText("Page 1 of 2").waitFor();
  await page.getByText("1 of 5 active").waitFor();
  assert.equal(await page.getByRole("button", { name: "Revoke" }).count(), 0);
  await page.getByRole("button", { name: "Next page" }).click();
  await page.getByRole("row").filter({ hasText: "the first" }).getByRole("button", { name: "Revoke" }).waitFor();
});
