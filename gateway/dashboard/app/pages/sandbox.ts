/** The page of one sandbox: state, console, usage, files and logs. */
import type { SandboxInfo } from "../../../../shared/schemas/sandboxes.ts";
import { APIError, call } from "../api.ts";
import { errorNotice, idOf, pill, skeleton, timeAgo } from "../components/bits.ts";
import { button, linkButton } from "../components/button.ts";
import { hidden } from "../components/field.ts";
import { icon } from "../components/icons.ts";
import { confirmDelete } from "../components/sandbox-dialogs.ts";
import { openClone, openFork, openSnapshot } from "../components/snapshot-dialogs.ts";
import { tabs } from "../components/tabs.ts";
import { type Child, fill, h } from "../dom.ts";
import { mebibytes } from "../format.ts";
import { poll } from "../poll.ts";
import { navigate, type View, type Visit } from "../router.ts";
import { hasFeature } from "../session.ts";
import { consolePanel } from "./sandbox/console.ts";
import { filesPanel } from "./sandbox/files.ts";
import { logsPanel } from "./sandbox/logs.ts";
import { usagePanel } from "./sandbox/usage.ts";
import { imageName, networkWords } from "./sandboxes.ts";

const everyMs = 15_000;
const soonMs = 1_000;

export function sandboxPage(visit: Visit): View {
  const { params, signal } = visit;
  const id = params.id ?? "";
  const place = h("div", "stack", skeleton(6));
  const heading = h("h1", { tabindex: -1 }, "Sandbox");
  const head = h("div", "sandbox-head", h("div", "title-line", heading));
  let status: SandboxInfo["status"] | undefined;
  const show = (sandbox: SandboxInfo): void => {
    if (status !== sandbox.status) {
      const hadParts = status !== undefined && status !== "creating";
      if (sandbox.status === "creating") fill(place, inTheMaking());
      else if (!hadParts) fill(place, parts(sandbox.id, signal));
      fill(head, ...headOf(sandbox, heading, signal));
    }
    status = sandbox.status;
    heading.textContent = sandbox.name;
    document.title = `${sandbox.name} · Sandgate`;
  };
  const turns = poll({
    everyMs: () => (status === "creating" || status === "moving" || status === "deleting" ? soonMs : everyMs),
    signal,
    work: async () => show(await call<SandboxInfo>("GET", `/v1/sandboxes/${encodeURIComponent(id)}`, { signal })),
    failed: (error) => {
      if (error instanceof APIError && error.status === 404) return fill(place, gone(status));
      if (status === undefined) fill(place, errorNotice(error, turns.now));
    },
  });
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Breadcrumb" }, h("a", { href: "/sandboxes" }, icon("back"), "Sandboxes"));
  return { title: "Sandbox", element: h("div", "page", crumbs, head, place) };
}

function headOf(sandbox: SandboxInfo, heading: HTMLElement, signal: AbortSignal): Child[] {
  const { id, status, image, created_at, cpu, memory, storage, network, isolation, error } = sandbox;
  // Stays where the user is if they have left this page in the meantime.
  const leave = (): void => void (signal.aborted || navigate("/sandboxes"));
  const remove = button({ label: "Delete", icon: "trash", kind: "danger-quiet", onClick: () => confirmDelete(sandbox, leave) });
  const terminal =
    hasFeature("sessions") && status === "running" ? linkButton("Terminal", `/sandboxes/${encodeURIComponent(id)}/terminal`, "secondary", "terminal") : null;
  const copies =
    hasFeature("snapshots") && status === "running"
      ? [
          button({ label: "Snapshot", icon: "snapshots", onClick: () => openSnapshot(id) }),
          button({ label: "Clone", icon: "clone", onClick: () => openClone(sandbox) }),
          button({ label: "Fork", icon: "fork", onClick: () => openFork(sandbox) }),
        ]
      : [];
  const facts: readonly (readonly [string, Child])[] = [
    ["Image", h("span", { title: image }, imageName(image))],
    ["CPU", `${cpu}`],
    ["Memory", mebibytes(memory)],
    ["Storage", `${storage} GB`],
    ["Network", networkWords(network.access)],
    ["Isolation", isolation === "strong" ? "Strong" : "Standard"],
    ["Created", timeAgo(created_at)],
    ...restoredOf(sandbox),
  ];
  return [
    h("div", "title-line", heading, pill(status), h("div", "actions", terminal, ...copies, remove)),
    h("div", {}, idOf(id)),
    error ? errorNotice(new Error(error)) : null,
    h("dl", "facts", ...facts.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value)))),
  ];
}

/** Of a sandbox made from a snapshot: whether processes continue in it, and if not although that was asked for, why. */
function restoredOf({ memory_restored, memory_reason }: SandboxInfo): (readonly [string, Child])[] {
  if (memory_restored) return [["Restored", "With processes"]];
  return memory_reason === null ? [] : [["Restored", h("span", { title: memory_reason }, "Only files", hidden(`: ${memory_reason}`))]];
}

function parts(id: string, signal: AbortSignal): HTMLElement {
  const logs = logsPanel(id, signal);
  return tabs("Sandbox", [
    { name: "console", label: "Console", panel: consolePanel(id, signal, logs.changed) },
    { name: "usage", label: "Usage", panel: usagePanel(id, signal) },
    { name: "files", label: "Files", panel: filesPanel(id, signal) },
    { name: "logs", label: "Logs", panel: logs },
  ]);
}

function inTheMaking(): HTMLElement {
  return h("div", { class: "empty", role: "status" }, h("h2", {}, "The sandbox is being made"), h("p", {}, "This page goes on by itself as soon as it runs."));
}

function gone(status: SandboxInfo["status"] | undefined): HTMLElement {
  const words = status === undefined ? "There is no such sandbox. It may have been deleted." : "This sandbox has been deleted.";
  return h("div", "empty", h("h2", {}, words), linkButton("All sandboxes", "/sandboxes"));
}
