/** The dialogs that create and delete a sandbox. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import { call, maker } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { hasFeature } from "../session.ts";
import { toast } from "../toast.ts";
import { checkbox, choice, field, focusProblem } from "./field.ts";
import { resourceFields, variableRows } from "./resources.ts";
import { filled } from "./snapshot-dialogs.ts";

/** Asks for the sandbox's properties. `created` runs as soon as the server has begun to create it. */
export function openNewSandbox(created: () => void): void {
  const name = field({ label: "Name", optional: true, attributes: { placeholder: "Chosen for you", maxlength: 63 } });
  const image = field({
    label: "Image",
    hint: "“default” has the usual tools; any other image is pulled from its registry.",
    attributes: { value: "default" },
  });
  const resources = resourceFields({ cpus: 1, memory: 512, storage: 5 });
  const network = choice(
    "Network",
    [
      ["outbound", "Outbound"],
      ["none", "None"],
    ],
    "outbound",
  );
  const isolation = choice(
    "Isolation",
    [
      ["standard", "Standard"],
      ["strong", "Strong: a kernel of its own (gVisor)"],
    ],
    "standard",
  );
  const variables = variableRows();
  const make = maker<SandboxInfo>("/v1/sandboxes/create");
  openDialog({
    title: "New sandbox",
    wide: true,
    body: [name.element, image.element, resources.element, network.element, ...(hasFeature("strong") ? [isolation.element] : []), variables.element],
    submit: { label: "Create sandbox" },
    onSubmit: async () => {
      resources.check();
      if (!image.value.trim()) image.complain("Enter an image.");
      if (focusProblem([image, ...resources.fields])) return false;
      const given = name.value.trim();
      const made = await make({
        image: image.value.trim(),
        ...(given ? { name: given } : {}),
        resources: resources.read(),
        network: { access: network.value },
        isolation: isolation.value,
        env_vars: variables.read(),
        wait_for_ready: false,
      });
      toast(`${made.name} is being made`);
      created();
      return true;
    },
  });
}

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
