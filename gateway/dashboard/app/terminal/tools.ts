/** The toolbar for the visible terminal. */
import { button, iconButton } from "../components/button.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { toast } from "../toast.ts";
import type { Desk } from "./desk.ts";

const readerKey = "sandgate.terminal.reader";

export interface Tools {
  readonly element: HTMLElement;
  /** Updates the tools for the visible terminal. */
  show(): void;
}

export function toolsOf(desk: Desk, address: (sessionId: string) => string, detached: () => void): Tools {
  const share = button({ label: "Share", icon: "eye", size: "small", onClick: () => void shareLink(desk, address) });
  const detach = button({
    label: "Detach",
    size: "small",
    onClick: () => {
      desk.close();
      toast("Left running. It goes on for up to an hour and is here again when you come back.");
      detached();
    },
  });
  const end = button({ label: "End", icon: "stop", size: "small", kind: "danger-quiet", onClick: () => askToEnd(desk) });
  detach.title = "Leave the terminal; what runs in it goes on for up to an hour";
  end.title = "End what runs in the terminal";
  const copy = iconButton("Copy the selection (Ctrl+Shift+C)", "copy", async () => {
    if (!(await desk.seen?.screen.copy())) toast("Select something in the terminal first");
    desk.focus();
  });
  const paste = iconButton("Paste (Ctrl+Shift+V)", "paste", () => void pasteInto(desk));
  const element = h("div", { class: "terminal-tools", role: "toolbar", "aria-label": "Terminal" }, copy, paste, reader(desk), share, detach, end);
  const show = (): void => {
    const live = desk.seen;
    element.hidden = !live;
    const isRunning = live?.isRunning ?? false;
    const canWrite = isRunning && (live?.isWriter ?? false);
    share.hidden = !isRunning;
    detach.hidden = !isRunning;
    end.hidden = !canWrite;
    paste.disabled = !canWrite;
  };
  return { element, show };
}

/** The switch for screen reader output, which the browser remembers. */
function reader(desk: Desk): HTMLButtonElement {
  const set = (on: boolean): void => {
    element.setAttribute("aria-pressed", String(on));
    desk.isRead = on;
  };
  const element = iconButton("Say output aloud with a screen reader", "sound", () => {
    const on = element.getAttribute("aria-pressed") !== "true";
    set(on);
    try {
      localStorage.setItem(readerKey, String(on));
    } catch {
      // Without storage, the choice lasts until the page is left.
    }
  });
  set(remembered());
  return element;
}

function remembered(): boolean {
  try {
    return localStorage.getItem(readerKey) === "true";
  } catch {
    return false;
  }
}

async function pasteInto(desk: Desk): Promise<void> {
  try {
    desk.seen?.screen.paste(await navigator.clipboard.readText());
  } catch {
    toast("The browser does not let this page read the clipboard: press Ctrl+Shift+V in the terminal");
  }
  desk.focus();
}

async function shareLink(desk: Desk, address: (sessionId: string) => string): Promise<void> {
  const sessionId = desk.seen?.sessionId;
  if (!sessionId) return;
  const link = address(sessionId);
  try {
    await navigator.clipboard.writeText(link);
    toast("Link copied. Whoever is logged in to this account can watch with it.");
    desk.focus();
  } catch {
    openDialog({
      title: "Watch this terminal",
      words: "Whoever is logged in to this account can watch with this link.",
      body: [h("pre", { class: "link-target", tabindex: 0, "aria-label": "Link" }, link)],
      submit: { label: "Close" },
      cancel: "",
      onSubmit: async () => {},
    });
  }
}

function askToEnd(desk: Desk): void {
  const live = desk.seen;
  if (!live) return;
  openDialog({
    title: `End ${live.label}?`,
    words: "Everything that runs in it is killed. To leave it running, detach instead.",
    submit: { label: "End it", kind: "danger" },
    onSubmit: async () => live.kill(),
  });
}
