/** Accessible tabs: arrow keys move between them. The address remembers the open one. */
import { h, uniqueId } from "../dom.ts";

export interface Panel {
  readonly element: HTMLElement;
  /** Called whenever the panel is shown or hidden. */
  shown?(): void;
  hidden?(): void;
}

export interface Tab {
  readonly name: string;
  readonly label: string;
  readonly panel: Panel;
}

export function tabs(label: string, all: readonly Tab[]): HTMLElement {
  const id = uniqueId("tabs");
  const handles = all.map(({ name, label: words }) =>
    h("button", { type: "button", role: "tab", class: "tab", id: `${id}-${name}`, "aria-controls": `${id}-${name}-panel` }, words),
  );
  const panels = all.map(({ name, panel }) =>
    h("div", { role: "tabpanel", id: `${id}-${name}-panel`, "aria-labelledby": `${id}-${name}`, hidden: true }, panel.element),
  );
  let open = -1;
  const choose = (index: number): void => {
    if (index === open) return;
    all[open]?.panel.hidden?.();
    open = index;
    for (const [at, handle] of handles.entries()) {
      handle.setAttribute("aria-selected", String(at === index));
      handle.tabIndex = at === index ? 0 : -1;
      panels[at]?.toggleAttribute("hidden", at !== index);
    }
    all[index]?.panel.shown?.();
  };
  for (const [index, handle] of handles.entries()) {
    handle.addEventListener("click", () => {
      choose(index);
      history.replaceState(null, "", `#${all[index]?.name}`);
    });
    handle.addEventListener("keydown", (event) => {
      const target = handles[targetOf(event.key, index, handles.length)];
      if (!target || target === handle) return;
      event.preventDefault();
      target.focus();
      target.click();
    });
  }
  const asked = all.findIndex(({ name }) => `#${name}` === location.hash);
  choose(Math.max(0, asked));
  return h("div", "tabs", h("div", { class: "tab-list", role: "tablist", "aria-label": label }, ...handles), ...panels);
}

function targetOf(key: string, index: number, size: number): number {
  if (key === "ArrowRight") return (index + 1) % size;
  if (key === "ArrowLeft") return (index + size - 1) % size;
  if (key === "Home") return 0;
  return key === "End" ? size - 1 : index;
}
