/** Links that a program prints. They say anything and lead anywhere, so somebody has to look before one is followed. */
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";

/** Shows where a link really leads, and goes there in a window that knows nothing of this one. */
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
