/** Links printed by programs. Their text may hide where they lead, so the user confirms the address first. */
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";

/** Shows where a link leads, and opens it in a window without access to this one. */
export function followAfterLooking(address: string): void {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") return;
  openDialog({
    title: "Open this address?",
    words: "A program in the sandbox has printed this link.",
    body: [h("pre", { class: "link-target", tabindex: 0, "aria-label": "Address" }, url.href)],
    submit: { label: "Open", kind: "danger" },
    onSubmit: async () => void window.open(url.href, "_blank", "noopener,noreferrer"),
  });
}
