/** The dialogs that take a snapshot of a sandbox, clone or fork it, and restore a snapshot. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import type { Fork, SnapshotInfo } from "../../../../shared/schemas/snapshots.ts";
import { maker } from "../api.ts";
import { openDialog } from "../dialog.ts";
import { h } from "../dom.ts";
import { navigate } from "../router.ts";
import { toast, toastError } from "../toast.ts";
import { explainedChoice, type Field, field, focusProblem } from "./field.ts";
import { resourceFields, variableRows } from "./resources.ts";

const nameField = (): Field => field({ label: "Name", optional: true, attributes: { placeholder: "Chosen for you", maxlength: 63 } });

/** The fields that were filled in; the server chooses the rest. */
export function filled<K extends string>(fields: Readonly<Record<K, Field>>): Partial<Record<K, string>> {
  const entries = (Object.entries(fields) as [K, Field][]).map(([key, { value }]) => [key, value.trim()] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== "")) as Partial<Record<K, string>>;
}

const snapshotLink = ({ id, name }: Pick<SnapshotInfo, "id" | "name">): HTMLElement => h("a", { href: `/snapshots?show=${encodeURIComponent(id)}` }, name);

export const sandboxLink = ({ id, name }: Pick<SandboxInfo, "id" | "name">): HTMLElement => h("a", { href: `/sandboxes/${encodeURIComponent(id)}` }, name);

export function openSnapshot(id: string): void {
  const name = nameField();
  const way = explainedChoice(
    "Consistency",
    [
      ["application", "Application-consistent", "Processes stand still for a moment, so that files are whole."],
      ["quick", "Quick", "Nothing stands still; files are as after a power cut."],
    ],
    "application",
  );
  const take = maker<SnapshotInfo>(`/v1/sandboxes/${encodeURIComponent(id)}/snapshot`);
  openDialog({
    title: "Take a snapshot",
    words: "Keeps the files of this sandbox as they are now, to start others from.",
    body: [name.element, way.element],
    submit: { label: "Take snapshot" },
    busyWords: () => "Taking the snapshot…",
    onSubmit: async () => toast("The snapshot ", snapshotLink(await take({ ...filled({ name }), quick: way.value === "quick" })), " is taken"),
  });
}

export function openClone({ id, cpu, memory }: SandboxInfo): void {
  const name = nameField();
  const resources = resourceFields({ cpus: cpu, memory });
  const image = field({
    label: "Image",
    optional: true,
    hint: "What was changed in this sandbox is laid over another image.",
    attributes: { placeholder: "The same" },
  });
  const make = maker<{ readonly sandbox: SandboxInfo }>(`/v1/sandboxes/${encodeURIComponent(id)}/clone`);
  openDialog({
    title: "Clone this sandbox",
    words: "Takes a snapshot, which is kept, and makes another sandbox from it, with as much storage.",
    body: [name.element, resources.element, image.element],
    submit: { label: "Clone" },
    busyWords: () => "Making the clone…",
    onSubmit: async () => {
      resources.check();
      if (focusProblem(resources.fields)) return false;
      const { sandbox } = await make({ ...filled({ name, image }), resources: resources.read() });
      toast("The clone ", sandboxLink(sandbox), " runs");
      return true;
    },
  });
}

export function openFork({ id, cpu, memory }: SandboxInfo): void {
  const name = nameField();
  const numbers = resourceFields({ count: 2, cpus: cpu, memory });
  const make = maker<Fork>(`/v1/sandboxes/${encodeURIComponent(id)}/fork`);
  openDialog({
    title: "Fork this sandbox",
    words: "Makes copies of it as it is now, with as much storage. They have its name, or this one, with a number.",
    body: [name.element, numbers.element],
    submit: { label: "Fork" },
    busyWords: () => "Making the copies…",
    onSubmit: async () => {
      numbers.check();
      if (focusProblem(numbers.fields)) return false;
      const { count, ...resources } = numbers.read();
      tellCopies((await make({ ...filled({ name }), count, resources })).data);
      return true;
    },
  });
}

/** The copies that were made in one message, and every reason for which others were not. */
function tellCopies(copies: Fork["data"]): void {
  const made = copies.flatMap((copy) => ("sandbox" in copy ? [copy.sandbox] : []));
  const reasons = new Set(copies.flatMap((copy) => ("error" in copy ? [copy.error.message] : [])));
  const [first] = made;
  if (made.length === 1 && first) toast("The copy ", sandboxLink(first), " runs");
  else if (made.length > 1) toast(h("a", { href: "/sandboxes" }, `${made.length} copies`), " run");
  for (const reason of reasons) toastError(new Error(`Copies that were not made: ${reason}`));
}

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
