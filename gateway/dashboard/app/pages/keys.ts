/** The page that lists, creates and revokes API keys. */
import type { ApiKey, ApiKeyPage } from "../../../../shared/schemas/accounts.ts";
import { call } from "../api.ts";
import { emptyState, errorNotice, pill, settingsFrame, skeleton, timeAgo } from "../components/bits.ts";
import { button } from "../components/button.ts";
import { openCreateKey } from "../components/create-key.ts";
import { pager, table } from "../components/table.ts";
import { confirmDialog } from "../dialog.ts";
import { type Child, fill, h } from "../dom.ts";
import type { View, Visit } from "../router.ts";
import { session } from "../session.ts";
import { toast } from "../toast.ts";

const pageSize = 20;

export function keysPage({ signal }: Visit): View {
  let page = 1;
  const place = h("div", {}, skeleton());
  const active = h("span", { class: "quiet", role: "status" });
  const create = button({ label: "Create key", icon: "plus", kind: "primary", onClick: () => openCreateKey(() => void load()) });
  const list = table("API keys", columns(askToRevoke), (key: ApiKey) => key.id);
  const pages = pager((wanted) => {
    page = wanted;
    void load();
  });
  const load = async (): Promise<void> => {
    try {
      show(await call<ApiKeyPage>("GET", `/v1/account/keys?page=${page}&page_size=${pageSize}`, { signal }));
    } catch (error) {
      if (!signal.aborted) fill(place, errorNotice(error, load));
    }
  };
  const show = ({ data, pagination, active: used }: ApiKeyPage): void => {
    const max = session().keys_max;
    active.textContent = `${used} of ${max} active`;
    create.disabled = used >= max;
    create.title = used >= max ? "Revoke a key to make room for another one." : "";
    list.show(data);
    pages.show(pagination);
    const none = emptyState("key", "No API keys yet", "Programs that use this server send a key with every request.");
    if (!pagination.total_items) fill(place, none);
    else if (!list.element.isConnected) fill(place, list.element, pages.element);
  };
  function askToRevoke(key: ApiKey): void {
    const words: Child = h(
      "span",
      {},
      "Requests with the key ",
      h("code", {}, `${key.prefix}…`),
      " (",
      h("strong", {}, key.name),
      ") fail from now on. This cannot be undone.",
    );
    confirmDialog("Revoke this key?", words, "Revoke key", async () => {
      await call("DELETE", `/v1/account/keys/${encodeURIComponent(key.id)}`);
      toast(`The key ${key.prefix}… is revoked`);
      await load();
    });
  }
  void load();
  document.addEventListener("sandgate:reconnected", () => void load(), { signal });
  const head = h("div", "section-head", h("div", {}, h("h2", {}, "API keys"), active), h("div", "actions", create));
  return { title: "API keys", element: settingsFrame("/settings/keys", head, place) };
}

function columns(revoke: (key: ApiKey) => void): Parameters<typeof table<ApiKey>>[1] {
  return [
    { title: "Name", cell: nameCell },
    { title: "Key", cell: ({ prefix }) => h("code", {}, `${prefix}…`), wide: true },
    { title: "Created", cell: ({ created_at }) => timeAgo(created_at), wide: true },
    { title: "Last used", cell: ({ last_used_at }) => (last_used_at ? timeAgo(last_used_at) : h("span", "quiet", "Never")), wide: true },
    { title: "Status", cell: ({ revoked_at }) => pill(revoked_at ? "revoked" : "active") },
    {
      title: "",
      align: "end",
      cell: (key) => !key.revoked_at && button({ label: "Revoke", kind: "danger-quiet", size: "small", onClick: () => revoke(key) }),
    },
  ];
}

/** Includes the prefix, which has no separate column on narrow screens. */
function nameCell({ name, prefix }: ApiKey): HTMLElement {
  return h("div", "two-lines", h("span", "strong clip", name), h("code", "narrow-only", `${prefix}…`));
}
