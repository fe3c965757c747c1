/** The dialog that deletes a sandbox, optionally after taking a snapshot. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import { call } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { hasFeature } from "../session.ts";
import { toast } from "../toast.ts";
import { checkbox, field } from "./field.ts";
import { filled } from "./snapshot-dialogs.ts";

interface Deleted {
  readonly snapshot_name?: string;
}

/** Asks for confirmation, deletes the sandbox and reports it. */
export function confirmDelete({ id, name, status }: Pick<SandboxInfo, "id" | "name" | "status">, then: () => void): void {
  const keep = checkbox("Take a snapshot first");
  const snapshotName = field({ label: "Name of the snapshot", optional: true, attributes: { placeholder: "Chosen for you", maxlength: 63 } });
  snapshotName.element.hidden = true;
  keep.input.addEventListener("change", () => {
    snapshotName.element.hidden = !keep.input.checked;
  });
  const canKeep = hasFeature("snapshots") && status === "running";
  openDialog({
    title: "Delete this sandbox?",
    words: h("span", {}, h("strong", {}, name), " and all files in it will be gone. Running commands end."),
    body: canKeep ? [keep.element, snapshotName.element] : [],
    submit: { label: "Delete sandbox", kind: "danger" },
    busyWords: () => (keep.input.checked ? "Keeping its files, then deleting…" : ""),
    onSubmit: async () => {
      const body = keep.input.checked ? { create_snapshot: true, ...filled({ snapshot_name: snapshotName }) } : undefined;
      const { snapshot_name } = await call<Deleted>("DELETE", `/v1/sandboxes/${encodeURIComponent(id)}/delete`, body ? { body } : {});
      if (snapshot_name) toast(`${name} is deleted, its files are in `, h("a", { href: "/snapshots" }, snapshot_name));
      else toast(`${name} is deleted`);
      then();
    },
  });
}
