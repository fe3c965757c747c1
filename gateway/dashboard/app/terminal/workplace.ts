/** The content of the terminal page, once its sandbox is loaded. */
import type { SessionInfo } from "../../../../shared/schemas/sessions.ts";
import { call } from "../api.ts";
import { emptyState } from "../components/bits.ts";
import { button } from "../components/button.ts";
import { fill, h } from "../dom.ts";
import { toastError } from "../toast.ts";
import { Desk } from "./desk.ts";
import { toolsOf } from "./tools.ts";
import { touchKeys } from "./touch-keys.ts";

interface Workplace {
  readonly place: HTMLElement;
  readonly sandboxId: string;
  /** The session to watch read-only; null to open all running sessions. */
  readonly watched: string | null;
  readonly signal: AbortSignal;
}

/** Opens the running sessions, or starts a shell if there are none. @throws {APIError} when the sessions cannot be listed. */
export async function openWorkplace({ place, sandboxId, watched, signal }: Workplace): Promise<void> {
  const path = `/sandboxes/${encodeURIComponent(sandboxId)}`;
  const desk = new Desk({ sandboxId, onChange: () => changed() });
  signal.addEventListener("abort", () => desk.dispose());
  const running = async (): Promise<SessionInfo[]> => {
    const { data } = await call<{ data: SessionInfo[] }>("GET", `/v1${path}/sessions`, { signal });
    const shown = data.filter(({ session_id, tty, status }) => tty && status === "running" && !desk.sessionIds.includes(session_id));
    return shown.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  };
  const open = (sessions: readonly SessionInfo[]): void => {
    for (const { session_id } of sessions) void desk.join(session_id, "write");
  };
  const more = moreButton(running, open);
  const tools = toolsOf(
    desk,
    (sessionId) => `${location.origin}${path}/terminal?session=${encodeURIComponent(sessionId)}`,
    () => void more.refresh(),
  );
  const start = (label: string): HTMLButtonElement => button({ label, icon: "plus", size: "small", onClick: () => void desk.start() });
  const empty = emptyState("terminal", "No terminal is open", "Start a shell in the sandbox, or open again what was left running.", start("New terminal"));
  const keys = touchKeys(desk);
  const changed = (): void => {
    const { seen } = desk;
    // Without input, the keys would only take up space.
    keys.hidden = !seen || (seen.state.name === "live" && !seen.isWriter) || seen.state.name === "exited";
    tools.show();
    empty.hidden = desk.seen !== undefined;
    desk.panels.hidden = desk.seen === undefined;
  };
  fill(place, h("div", "terminal-head", desk.tabs, ...(watched ? [] : [start("New"), more.element]), tools.element), desk.panels, empty, keys, hint());
  changed();
  if (watched) return desk.join(watched, "watch");
  const sessions = await running();
  open(sessions);
  if (sessions.length === 0) await desk.start();
}

/** A button that opens the sessions left running, and shows their number. */
function moreButton(left: () => Promise<SessionInfo[]>, open: (sessions: readonly SessionInfo[]) => void) {
  const element = button({
    label: "",
    size: "small",
    onClick: () => {
      element.hidden = true;
      left().then(open, toastError);
    },
  });
  element.hidden = true;
  const refresh = async (): Promise<void> => {
    const { length } = await left().catch(() => []);
    element.hidden = length === 0;
    fill(element, h("span", {}, `Open ${length} more`));
  };
  return { element, refresh };
}

function hint(): HTMLElement {
  const key = (words: string): HTMLElement => h("kbd", {}, words);
  const stays = "Terminals go on for up to an hour when this page is left. ";
  const ways = [stays, key("Ctrl+Shift+A"), " selects all, ", key("Ctrl+Shift+C"), " copies, ", key("Ctrl+Shift+V"), " pastes, "];
  return h("p", "terminal-hint", ...ways, key("Ctrl+Shift+L"), " leaves the terminal");
}
