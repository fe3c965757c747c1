/** Modal dialogs. The browser's dialog element traps the focus, closes on Escape and restores the focus. */
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
  /** The submit button's label while the work runs. */
  readonly busyWords?: () => string;
  /** The cancel button's label; empty for no such button. */
  readonly cancel?: string;
  readonly wide?: boolean;
  /**
   * Says what closing would lose; undefined when nothing. While something would be lost, Escape, the cross and a click
   * outside show this warning instead of closing; only the dialog's own button closes it.
   */
  readonly losing?: () => string | undefined;
  /** The initial focus, if not the first field or the safe button. */
  readonly focus?: HTMLElement;
  /** Runs on submit. Then the dialog closes, or shows the error; `false` keeps it open. */
  readonly onSubmit: () => Promise<unknown>;
}

export interface Dialog {
  readonly element: HTMLDialogElement;
  close(): void;
}

/** Opens a dialog with one form. The focus is on the first field, or on the safe button if there is no field or the action is dangerous. */
export function openDialog(options: DialogOptions): Dialog {
  const { title, words, body = [], submit, cancel = "Cancel", wide = false, losing } = options;
  const id = uniqueId("dialog");
  const submitButton = button({ kind: "primary", ...submit, type: "submit" });
  const cancelButton = cancel ? button({ label: cancel, onClick: () => element.close() }) : null;
  const trouble = h("div", "dialog-trouble");
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
    h("div", "dialog-body", words ? h("p", "dialog-words", words) : null, ...body, trouble, said),
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
  // Browsers close the dialog on a second Escape even if `cancel` is prevented.
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

/** Runs `onSubmit`, one at a time. Closing the dialog does not stop it; a failure is then shown in a toast. */
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

/** Asks before an irreversible action. The dialog stays open until the action succeeds, and shows its error if it fails. */
export function confirmDialog(title: string, words: Child, label: string, work: () => Promise<void>): void {
  openDialog({ title, words, submit: { label, kind: "danger" }, onSubmit: work });
}

/** Reacts only to clicks that begin and end on the backdrop, not to a selection dragged out of a field. */
function closeBeside(element: HTMLDialogElement, leave: () => void): void {
  let pressed = false;
  element.addEventListener("pointerdown", (event) => {
    pressed = event.target === element;
  });
  element.addEventListener("click", (event) => {
    if (pressed && event.target === element) leave();
  });
}
