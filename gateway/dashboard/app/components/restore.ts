/** The dialog that restores a snapshot into a new sandbox. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import type { SnapshotInfo } from "../../../../shared/schemas/snapshots.ts";
import { maker } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { navigate } from "../router.ts";
import { toast } from "../toast.ts";
import { field, focusProblem } from "./field.ts";
import { resourceFields } from "./resources.ts";
import { filled, nameField, sandboxLink } from "./snapshot-dialogs.ts";
import { variableRows } from "./variables.ts";

const asBefore = "As in the snapshot";

/** Asks what to change, and goes to the new sandbox, which may still be in creation. */
export function openRestore({ id, name: snapshotName }: SnapshotInfo): void {
  const name = nameField();
  const resources = resourceFields({ cpus: "", memory: "", storage: "" }, asBefore);
  const hint = "What was changed in the sandbox is laid over another image.";
  const image = field({ label: "Image", optional: true, hint, attributes: { placeholder: asBefore } });
  const variables = variableRows("Added to those of the snapshot, or in place of them.");
  const make = maker<SandboxInfo>(`/v1/snapshots/${encodeURIComponent(id)}/restore`);
  const dialog = openDialog({
    title: "Restore a snapshot",
    words: h("span", {}, "Makes another sandbox with the files of ", h("strong", {}, snapshotName), "."),
    wide: true,
    body: [name.element, resources.element, image.element, variables.element],
    submit: { label: "Restore" },
    busyWords: () => "Restoring…",
    onSubmit: async () => {
      resources.check();
      if (focusProblem(resources.fields)) return false;
      const sandbox = await make({ ...filled({ name, image }), resources: resources.read(), env_vars: variables.read(), wait_for_ready: false });
      if (!dialog.element.open) return toast("The sandbox ", sandboxLink(sandbox), " is being made");
      dialog.close();
      return navigate(`/sandboxes/${encodeURIComponent(sandbox.id)}`);
    },
  });
}
