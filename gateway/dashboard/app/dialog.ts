/** Modal dialogs. The browser's own element keeps the focus inside, closes on Escape and gives the focus back. */
import { errorNotice } from "./components/bits.ts";
import { type ButtonOptions, button, iconButton, isBusy, whileBusy } from "./components/button.ts";
import { icon } from "./components/icons.ts";
import { type Child, fill, h, uniqueId } from "./dom.ts";
import { toastError } from "./toast.ts";

export interface DialogOptions {
  readonly title: string;
  readonly words?: Child;
  readonly body?: readonly Child[];
  readonly submit: Pick<ButtonOptions, "label" | "kind">;
  /** What the submit button says of work that may take a while. */
  readonly busyWords?: () => string;
  /** The other button's label; none when empty. */
  readonly cancel?: string;
  readonly wide?: boolean;
  /**
   * What would be lost by closing; nothing when undefined. As long as something would, Escape, the cross and a click beside
   * the dialog say so instead of closing it: that takes its own button.
   */
  readonly losing?: () => string | undefined;
  /** What has the focus at first, where that is not the first field or the safe button. */
  readonly focus?: HTMLElement;
  /** Runs on the submit button; the dialog closes after it, or shows its error. `false` keeps it open. */
  readonly onSubmit: () => Promise<unknown>;
}

export interface Dialog {
  readonly element: HTMLDialogElement;
  close(): void;
}

/** Opens a dialog with one form. The first field has the focus, or the safe button where there is none or something would be lost. */
export function openDialog(options: DialogOptions): Dialog {
  const { title, words, body = [], submit, cancel = "Cancel", wide = false, losing } = options;
  const id = uniqueId("dialog");
  const submitButton = button({ kind: "primary", ...submit, type: "submit" });
  const cancelButton = cancel ? button({ label: cancel, onClick: () => element.close() }) : null;
  const trouble = h("div", { class: "dialog-trouble" });
  const said = h("p", { class: "visually-hidden", role: "status" });
  const form = h(
    "form",
    { novalidate: true },
    h(
      "header",
      {},
      h("h2", { id }, title),
      iconButton("Close", "close", () => leave()),
    ),
    h("div", { class: "dialog-body" }, words ? h("p", { class: "dialog-words" }, words) : null, ...body, trouble, said),
    h("footer", {}, cancelButton, submitButton),
  );
  const element = h("dialog", { class: `dialog${wide ? " wide" : ""}`, "aria-labelledby": id }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submitTo(options, { element, submitButton, cancelButton, trouble, said });
  });
  const leave = (): void => {
    const loss = losing?.();
    if (loss === undefined) return element.close();
    fill(trouble, h("div", { class: "notice warning", role: "alert" }, icon("warning"), h("div", {}, loss)));
    options.focus?.focus();
  };
  element.addEventListener("close", () => element.remove());
  // The second of two Escapes would close it whatever is answered to its `cancel`.
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !losing) return;
    event.preventDefault();
    leave();
  });
  element.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });
  closeBeside(element, leave);
  document.body.append(element);
  element.showModal();
  const first = form.querySelector<HTMLElement>(".dialog-body input, .dialog-body textarea");
  const safe = submit.kind === "danger" ? cancelButton : null;
  (options.focus ?? safe ?? first ?? cancelButton ?? submitButton).focus();
  return { element, close: () => element.close() };
}

interface Parts {
  readonly element: HTMLDialogElement;
  readonly submitButton: HTMLButtonElement;
  readonly cancelButton: HTMLButtonElement | null;
  readonly trouble: HTMLElement;
  readonly said: HTMLElement;
}

/** Does what the dialog is for, once at a time. Closing the dialog does not end it: how it went is then said in a toast. */
async function submitTo({ cancel = "Cancel", busyWords, onSubmit }: DialogOptions, parts: Parts): Promise<void> {
  const { element, submitButton, cancelButton, trouble, said } = parts;
  if (isBusy(submitButton)) return;
  fill(trouble);
  const words = busyWords?.() ?? "";
  said.textContent = words;
  if (words && cancelButton) cancelButton.textContent = "Close";
  try {
    if ((await whileBusy(submitButton, onSubmit, words)) !== false) element.close();
  } catch (error) {
    if (!element.open) return toastError(error);
    fill(trouble, errorNotice(error));
    trouble.scrollIntoView({ block: "nearest" });
  } finally {
    said.textContent = "";
    if (cancelButton) cancelButton.textContent = cancel;
  }
}

/** Asks before something that cannot be taken back; the dialog stays until it is done or has failed. */
export function confirmDialog(title: string, words: Child, label: string, work: () => Promise<void>): void {
  openDialog({ title, words, submit: { label, kind: "danger" }, onSubmit: work });
}

/** Only a click that began and ended on the backdrop: dragging a selection out of a field is not one. */
function closeBeside(element: HTMLDialogElement, leave: () => void): void {
  let pressed = false;
  element.addEventListener("pointerdown", (event) => {
    pressed = event.target === element;
  });
  element.addEventListener("click", (event) => {
    if (pressed && event.target === element) leave();
  });
}
