/** Creates an API key and shows it once. */
import type { NewApiKey } from "../../../../shared/schemas/accounts.ts";
import { call } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { copyButton } from "./button.ts";
import { field } from "./field.ts";
import { icon } from "./icons.ts";

/** Asks for a name, creates the key and shows it. `created` runs as soon as the key exists. */
export function openCreateKey(created: () => void): void {
  const opener = document.activeElement;
  const name = field({ label: "Name", hint: "What the key is for, so that you know it again.", attributes: { placeholder: "CI pipeline", maxlength: 100 } });
  const dialog = openDialog({
    title: "Create an API key",
    body: [name.element],
    submit: { label: "Create key" },
    onSubmit: async () => {
      const given = name.value.trim();
      const key = await call<NewApiKey>("POST", "/v1/account/keys", { body: given ? { name: given } : {} });
      created();
      dialog.close();
      // When the next dialog closes, the browser restores the focus to the element that had it when the dialog opened.
      if (opener instanceof HTMLElement) opener.focus();
      showKey(key);
    },
  });
}

/** Shows the key. Until it has been copied, only Done closes the dialog. */
function showKey({ name, key }: NewApiKey): void {
  let isCopied = false;
  const copy = copyButton(
    () => key,
    "Copy key",
    () => {
      isCopied = true;
    },
  );
  const shown = h("code", { tabindex: 0, "data-testid": "new-key" }, key);
  shown.addEventListener("copy", () => {
    isCopied ||= getSelection()?.toString().trim() === key;
  });
  const secret = h("div", "secret", shown, copy);
  const warning = h("div", "notice warning", icon("warning"), h("div", {}, "Copy it now: it is not stored and cannot be shown again."));
  openDialog({
    title: "Your new API key",
    words: h("span", {}, "Send it in the header ", h("code", {}, "x-api-key"), ". Its name is ", h("strong", {}, name), "."),
    body: [secret, warning],
    submit: { label: "Done" },
    cancel: "",
    wide: true,
    focus: copy,
    losing: () => (isCopied ? undefined : "The key has not been copied and is gone when this closes. Copy it, or press Done if you have it."),
    onSubmit: async () => true,
  });
}
