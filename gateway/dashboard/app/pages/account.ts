/** The account page: profile, limits and password. */
import { call } from "../api.ts";
import { formOf, settingsFrame } from "../components/bits.ts";
import { button, whileBusy } from "../components/button.ts";
import { field, focusProblem } from "../components/field.ts";
import { type Child, h } from "../dom.ts";
import { count, fullTime, plural } from "../format.ts";
import { navigate, type View } from "../router.ts";
import { account, logOut, renew } from "../session.ts";
import { toast, toastError } from "../toast.ts";
import { passwordCharactersMin } from "./auth.ts";

export function accountPage(): View {
  const leave = button({ label: "Log out", icon: "logout", onClick: (element) => void whileBusy(element, end) });
  const end = (): Promise<void> => logOut().then(() => navigate("/login"), toastError);
  const sessions = section("Session", "Ends the session of this browser.", h("div", {}, leave));
  const element = settingsFrame("/settings/account", profile(), account().email === null ? null : password(), sessions);
  return { title: "Account", element };
}

function profile(): HTMLElement {
  const { email, name, tier, limits, created_at, id, operator } = account();
  const burst = limits.burst < limits.requests_per_minute ? `, at most ${count(limits.burst)} at once` : "";
  const facts = h(
    "dl",
    "fact-list",
    ...fact("E-mail", email ?? h("span", "quiet", "None")),
    ...fact("Name", name),
    ...fact("Tier", h("span", {}, h("span", "badge", tier), operator ? h("span", "badge", "operator") : null)),
    ...fact("Limits of each key", `${count(limits.requests_per_minute)} requests a minute${burst}, ${plural(limits.sandboxes, "sandbox")} at the same time`),
    ...fact("Account", h("code", {}, id)),
    ...fact("Since", fullTime(created_at)),
  );
  return section("Profile", "Limits and tier are set by the operator of this server.", facts);
}

function password(): HTMLElement {
  const input = (label: string, name: string, autocomplete: string, hint?: string) =>
    field({ label, ...(hint ? { hint } : {}), attributes: { type: "password", name, autocomplete } });
  const current = input("Current password", "current_password", "current-password");
  const wanted = input("New password", "new_password", "new-password", `At least ${passwordCharactersMin} characters.`);
  const repeated = input("New password again", "repeat_password", "new-password");
  const all = [current, wanted, repeated];
  const trouble = h("div", "form-trouble");
  const send = button({ label: "Change password", type: "submit", kind: "primary" });
  const submit = async (): Promise<void> => {
    if (!current.value) current.complain("Enter your current password.");
    if (wanted.value.length < passwordCharactersMin) wanted.complain(`Use at least ${passwordCharactersMin} characters.`);
    if (repeated.value !== wanted.value) repeated.complain("The two are not the same.");
    if (focusProblem(all)) return;
    const body = { current_password: current.value, new_password: wanted.value };
    renew((await call<{ csrf_token: string }>("POST", "/v1/account/password", { body })).csrf_token);
    for (const { input } of all) input.value = "";
    toast("The password is changed. All other sessions are logged out.");
  };
  const content = [...all.map(({ element }) => element), trouble, h("div", {}, send)];
  const form = formOf("stack narrow-form", content, trouble, send, submit);
  return section("Password", "Changing it logs out all other browsers. API keys keep working.", form);
}

function section(title: string, words: string, content: Child): HTMLElement {
  return h("section", "setting card", h("div", "setting-head", h("h2", {}, title), h("p", {}, words)), h("div", "setting-body", content));
}

function fact(name: string, value: Child): HTMLElement[] {
  return [h("dt", {}, name), h("dd", {}, value)];
}
