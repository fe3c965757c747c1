/** The pages without a mouse, and as assistive technology finds them. */
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Page } from "playwright-core";
import { closed, heading, TestBrowser } from "../../helpers/browser.ts";
import { fixture } from "../../helpers/fixture.ts";
import { signUp } from "../../helpers/members.ts";
import { sharedStack } from "../../helpers/shared.ts";

const { url } = sharedStack();

const member = await fixture(signUp(url));
const browser = await fixture(TestBrowser.launch(url));
afterEach(() => browser.closePages());

/** What has the focus, by the name that it is announced with. */
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>(`(() => {
    const element = document.activeElement === document.body ? null : document.activeElement;
    return element?.labels?.[0]?.textContent ?? element?.getAttribute("aria-label") ?? element?.textContent ?? "";
  })()`);

async function tabTo(page: Page, name: string): Promise<void> {
  await page.getByText(name).or(page.getByLabel(name)).first().waitFor({ state: "attached" });
  for (let steps = 0; steps < 40; steps++) {
    if ((await focused(page)).includes(name)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the Tab key never reaches ${name}`);
}

test("somebody logs in, makes a key and closes its dialog by keyboard alone", async () => {
  const page = await browser.open("/login?next=/settings/keys");
  await heading(page, "Log in to Sandgate");
  assert.equal(await focused(page), "E-mail");
  await page.keyboard.type(member.email);
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Password");
  await page.keyboard.type(member.password);
  await page.keyboard.press("Enter");
  await heading(page, "Settings");
  await page.getByText("No API keys yet").waitFor();

  await tabTo(page, "Create key");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  assert.equal(await focused(page), "Name");
  await page.keyboard.press("Escape");
  await closed(page);
  assert.equal(await focused(page), "Create key");

  await page.keyboard.press("Enter");
  await page.keyboard.type("by keyboard");
  await page.keyboard.press("Enter");
  await page.getByTestId("new-key").waitFor();
  await tabTo(page, "Done");
  await page.keyboard.press("Enter");
  await closed(page);
  assert.equal(await focused(page), "Create key");
  await page.getByRole("row").filter({ hasText: "by keyboard" }).waitFor();
});

test("the focus stays inside an open dialog", async () => {
  const page = await browser.open("/sandboxes", { member });
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  for (let steps = 0; steps < 25; steps++) {
    await page.keyboard.press("Tab");
    // Between its last and its first element the browser's own controls have the focus, and the page's body stands for them.
    assert.ok(await page.evaluate("document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"));
  }
});

test("the focus can be seen wherever it is", async () => {
  const page = await browser.open("/settings/keys", { member });
  await heading(page, "Settings");
  for (let steps = 0; steps < 12; steps++) {
    await page.keyboard.press("Tab");
    const visible = await page.evaluate(`(() => {
      const element = document.activeElement;
      const shown = element instanceof HTMLInputElement && element.type === "radio" ? element.nextElementSibling : element;
      const { outlineStyle, outlineWidth } = getComputedStyle(shown);
      return element === document.body || (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1);
    })()`);
    assert.ok(visible, `${await focused(page)} has no focus ring`);
  }
});

test("tabs of a sandbox are reached with the arrow keys, and a command is run with Enter", async () => {
  const { id } = await member.call<{ id: string }>("POST", "/v1/sandboxes/create", { image: "default", name: "keys-only" });
  const page = await browser.open(`/sandboxes/${id}`, { member });
  await tabTo(page, "Console");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.getByRole("tab", { name: "Usage" }).getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowLeft");
  await tabTo(page, "Command");
  await page.keyboard.type("echo typed");
  await page.keyboard.press("Enter");
  const status = page.locator(".run [aria-live=polite]");
  await status.getByText("exit code 0").waitFor();
  assert.equal(await page.getByLabel("Output").textContent(), "typed\n");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.getByLabel("Command", { exact: true }).inputValue(), "echo typed");
  await audit(page, `keys-only · Sandgate`);
});

test("on a narrow screen the menu opens, closes on Escape and gives the focus back", async () => {
  const page = await browser.open("/", { member, viewport: { width: 390, height: 844 } });
  await tabTo(page, "Menu");
  await page.keyboard.press("Enter");
  const nav = page.getByRole("navigation", { name: "Main" });
  await nav.getByRole("link", { name: "Sandboxes" }).waitFor();
  await page.keyboard.press("Escape");
  await nav.waitFor({ state: "hidden" });
  assert.equal(await focused(page), "Menu");
});

test("the theme that was chosen is there after the page is loaded again", async () => {
  const page = await browser.open("/", { member, colorScheme: "light" });
  await page.getByRole("radio", { name: "Dark" }).check({ force: true });
  const ground = "getComputedStyle(document.documentElement).backgroundColor";
  const dark = await page.evaluate(ground);
  await page.reload();
  await heading(page, "Overview");
  assert.equal(await page.evaluate(ground), dark);
  assert.equal(await page.evaluate("document.documentElement.dataset.theme"), "dark");
});

const places: readonly (readonly [path: string, title: string])[] = [
  ["/", "Overview · Sandgate"],
  ["/sandboxes", "Sandboxes · Sandgate"],
  ["/snapshots", "Snapshots · Sandgate"],
  ["/settings/keys", "API keys · Sandgate"],
  ["/settings/account", "Account · Sandgate"],
];

for (const [path, title] of places) {
  test(`${path} is named, has landmarks, and all that can be used has a name`, async () => {
    const page = await browser.open(path, { member });
    await page.getByRole("main").waitFor();
    await audit(page, title);
    assert.equal(await page.getByRole("navigation", { name: "Main" }).locator("[aria-current=page]").count(), 1);
  });
}

for (const [path, title] of [
  ["/login", "Log in · Sandgate"],
  ["/signup", "Sign up · Sandgate"],
] as const) {
  test(`${path} is named, has a landmark, and all that can be used has a name`, async () => {
    await audit(await browser.open(path), title);
  });
}

/** The rules that every page keeps. */
async function audit(page: Page, title: string): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await page.title(), title);
  assert.equal(await page.locator("h1").count(), 1);
  assert.equal(await page.locator("main").count(), 1);
  assert.equal(await page.evaluate("document.documentElement.lang"), "en");
  const nameless = await page.evaluate<
    string[]
  >(`[...document.querySelectorAll("button, a, input, textarea, select, [role=tab], [role=img], [role=meter]")].filter((element) => {
    const referred = (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("");
    const labels = [...(element.labels ?? [])].map((label) => label.textContent).join("");
    return !(referred || labels || element.getAttribute("aria-label") || element.textContent).trim();
  }).map((element) => element.outerHTML.slice(0, 120))`);
  assert.deepEqual(nameless, []);
  const twice = await page.evaluate<string[]>(`(() => {
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    return ids.filter((id, index) => ids.indexOf(id) !== index);
  })()`);
  assert.deepEqual(twice, []);
}
