/** Taking a snapshot of a sandbox, and a clone. */
import { call } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { navigate } from "../router.ts";
import { toast } from "../toast.ts";
import type { Sandbox, Snapshot } from "../types.ts";
import { field } from "./field.ts";

const nameField = () => field({ label: "Name", optional: true, attributes: { placeholder: "Chosen for you", maxlength: 63 } });

export function openSnapshot(id: string): void {
  const name = nameField();
  openDialog({
    title: "Take a snapshot",
    words: "Keeps the files as they are now. Processes stand still for that moment.",
    body: [name.element],
    submit: { label: "Take snapshot" },
    onSubmit: async () => {
      const taken = await call<Snapshot>("POST", `/v1/sandboxes/${encodeURIComponent(id)}/snapshot`, { body: named(name.value) });
      toast(`${taken.name} is taken`);
    },
  });
}

export function openClone(id: string): void {
  const name = nameField();
  openDialog({
    title: "Clone this sandbox",
    words: "Makes another sandbox with the same files.",
    body: [name.element],
    submit: { label: "Clone" },
    onSubmit: async () => {
      const { sandbox } = await call<{ sandbox: Sandbox }>("POST", `/v1/sandboxes/${encodeURIComponent(id)}/clone`, {
        body: { ...named(name.value), wait_for_ready: false },
      });
      navigate(`/sandboxes/${encodeURIComponent(sandbox.id)}`);
    },
  });
}

function named(value: string): { name?: string } {
  const name = value.trim();
  return name ? { name } : {};
}
