/** The dialog that creates a sandbox. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import { maker } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { toast } from "../toast.ts";
import { choice, field, focusProblem } from "./field.ts";
import { resourceFields } from "./resources.ts";
import { variableRows } from "./variables.ts";

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
  const variables = variableRows();
  const make = maker<SandboxInfo>("/v1/sandboxes/create");
  openDialog({
    title: "New sandbox",
    wide: true,
    body: [name.element, image.element, resources.element, network.element, variables.element],
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
        env_vars: variables.read(),
        wait_for_ready: false,
      });
      toast(`${made.name} is being made`);
      created();
      return true;
    },
  });
}
