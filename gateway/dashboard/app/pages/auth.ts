/** The login and sign-up pages. */
import { APIError, call, type Session } from "../api.ts";
import { formOf } from "../components/bits.ts";
import { button } from "../components/button.ts";
import { type Field, field, focusProblem } from "../components/field.ts";
import { mark } from "../components/icons.ts";
import { themeChoice } from "../components/shell.ts";
import { type Child, fill, h } from "../dom.ts";
import { navigate, safePath, type View, type Visit } from "../router.ts";
import { begin } from "../session.ts";

export const passwordCharactersMin = 10;

const emailField = (): Field =>
  field({ label: "E-mail", attributes: { type: "email", name: "email", autocomplete: "username", inputmode: "email", "data-autofocus": true } });

export function loginPage(visit: Visit): View {
  const email = emailField();
  const password = field({ label: "Password", attributes: { type: "password", name: "password", autocomplete: "current-password" } });
  const submit = async (): Promise<void> => {
    if (!email.value.trim()) email.complain("Enter your e-mail address.");
    if (!password.value) password.complain("Enter your password.");
    if (focusProblem([email, password])) return;
    const body = { email: email.value.trim(), password: password.value };
    try {
      enter(await call<Session>("POST", "/v1/auth/login", { body, anonymous: true }), visit);
    } catch (error) {
      password.input.select();
      throw error;
    }
  };
  const more = h("p", "auth-more");
  whenSignUpIs(true, visit, () => fill(more, "New here? ", h("a", { href: `/signup${location.search}` }, "Create an account")));
  return frame("Log in", "Log in to Sandgate", authForm([email, password], "Log in", submit), more);
}

export function signupPage(visit: Visit): View {
  const email = emailField();
  const name = field({ label: "Name", optional: true, attributes: { name: "name", autocomplete: "name", maxlength: 100 } });
  const attributes = { type: "password", name: "password", autocomplete: "new-password" };
  const password = field({ label: "Password", hint: `At least ${passwordCharactersMin} characters.`, attributes });
  const submit = async (): Promise<void> => {
    if (!email.value.includes("@")) email.complain("Enter an e-mail address.");
    if (password.value.length < passwordCharactersMin) password.complain(`Use at least ${passwordCharactersMin} characters.`);
    if (focusProblem([email, password])) return;
    const given = name.value.trim();
    const body = { email: email.value.trim(), password: password.value, ...(given ? { name: given } : {}) };
    await call("POST", "/v1/auth/signup", { body, anonymous: true });
    enter(await logInAfterSignUp({ email: body.email, password: body.password }), visit);
  };
  const more = h("p", "auth-more", "Have an account? ", h("a", { href: `/login${location.search}` }, "Log in"));
  const form = authForm([email, name, password], "Create account", submit);
  const view = frame("Sign up", "Create your account", form, more);
  whenSignUpIs(false, visit, () => fill(form, h("p", "notice", "Signing up is closed on this server. Ask its operator for an account.")));
  return view;
}

/** Logs in after signing up. The server does not reveal whether the address was new, but the login fails if it was not. @throws {APIError} */
async function logInAfterSignUp(body: { email: string; password: string }): Promise<Session> {
  try {
    return await call<Session>("POST", "/v1/auth/login", { body, anonymous: true });
  } catch (error) {
    if (!(error instanceof APIError) || error.status !== 401) throw error;
    throw new Error("This e-mail address may have an account already. Log in with its password.");
  }
}

function enter(session: Session, visit: Visit): void {
  begin(session);
  navigate(safePath(visit.query.get("next")), { replace: true });
}

function authForm(fields: readonly Field[], label: string, submit: () => Promise<void>): HTMLFormElement {
  const trouble = h("div", "form-trouble");
  const send = button({ label, kind: "primary", type: "submit" });
  return formOf("auth-form", [...fields.map(({ element }) => element), trouble, send], trouble, send, submit);
}

/** Calls back if sign-up is open, or closed. Without an answer the page stays unchanged; the server enforces the setting anyway. */
function whenSignUpIs(open: boolean, { signal }: Visit, then: () => void): void {
  call<{ sign_up: boolean }>("GET", "/v1/auth/settings", { signal, anonymous: true }).then(
    ({ sign_up }) => sign_up === open && then(),
    () => {},
  );
}

function frame(title: string, heading: string, ...content: Child[]): View {
  const box = h("div", "auth-box", mark(), h("h1", { tabindex: -1 }, heading), ...content);
  return { title, element: h("main", "bare auth", box, themeChoice()), layout: "bare" };
}
