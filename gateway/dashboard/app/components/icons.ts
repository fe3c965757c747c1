/** Line icons on a 16-pixel grid. */
import { svg } from "../dom.ts";

const paths = {
  overview: ["M2.5 13.5h11", "M4.5 11V8", "M8 11V3.5", "M11.5 11V6"],
  sandboxes: ["M8 2 13.5 5v6L8 14l-5.5-3V5z", "M2.5 5 8 8l5.5-3", "M8 8v6"],
  snapshots: ["M8 2.5 14 5.5 8 8.5 2 5.5z", "M2.5 8.25 8 11l5.5-2.75", "M2.5 11 8 13.75 13.5 11"],
  settings: [
    "M2.5 4.5h5",
    "M11 4.5h2.5",
    "M2.5 11.5H5",
    "M8.5 11.5h5",
    "M9.25 2.75a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5",
    "M6.75 9.75a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5",
  ],
  menu: ["M2.5 4.5h11", "M2.5 8h11", "M2.5 11.5h11"],
  close: ["m4 4 8 8", "m12 4-8 8"],
  plus: ["M8 3v10", "M3 8h10"],
  copy: ["M5.5 5.5h7v8h-7z", "M10.5 5.5v-3h-7v8h2"],
  check: ["m3 8.5 3.5 3.5L13 4.5"],
  trash: ["M2.5 4.5h11", "M6 4.5v-2h4v2", "m4 4.5.6 9h6.8l.6-9", "M6.75 7v4", "M9.25 7v4"],
  play: ["M4.5 3v10L12.5 8z"],
  stop: ["M4 4h8v8H4z"],
  upload: ["M8 10.5V2.5", "m4.75 5.5L8 2.25l3.25 3.25", "M2.5 10.5v3h11v-3"],
  download: ["M8 2.5v8", "m4.75 7.5L8 10.75l3.25-3.25", "M2.5 10.5v3h11v-3"],
  chevron: ["m6 3.5 4.5 4.5L6 12.5"],
  back: ["M10 3.5 5.5 8l4.5 4.5"],
  forward: ["m6 3.5 4.5 4.5L6 12.5"],
  logout: ["M6.5 2.5h-4v11h4", "M6 8h7.5", "m10.5 5 3 3-3 3"],
  refresh: ["M13 8a5 5 0 1 1-1.5-3.55", "M13.25 2v3h-3"],
  key: ["M6 7.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5", "m8 8 5.5-5.5", "m11 5 1.75 1.75"],
  warning: ["M8 2.5 14.5 13.5h-13z", "M8 6.5v3.25", "M8 11.6v.1"],
  light: [
    "M8 5.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5",
    "M8 1.5v1",
    "M8 13.5v1",
    "M1.5 8h1",
    "M13.5 8h1",
    "m3.4 3.4.7.7",
    "m11.9 11.9.7.7",
    "m12.6 3.4-.7.7",
    "m4.1 11.9-.7.7",
  ],
  dark: ["M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z"],
  auto: ["M2 3h12v8H2z", "M5.5 13.5h5", "M8 11v2.5"],
  clone: ["M2.5 2.5h7v7h-7z", "M6.5 12.5v1h7v-7h-1"],
  fork: ["M8 14V9.5", "M3.5 2v2.5c0 3 4.5 2 4.5 5", "M12.5 2v2.5c0 3-4.5 2-4.5 5", "m2 3.5 1.5-1.5 1.5 1.5", "m11 3.5 1.5-1.5 1.5 1.5"],
  docs: ["M8 4.5C6.5 3.2 4.5 2.9 2.5 3v9.5c2-.1 4 .2 5.5 1.5 1.5-1.3 3.5-1.6 5.5-1.5V3C11.5 2.9 9.5 3.2 8 4.5z", "M8 4.5V14"],
  out: ["M6.5 3.5h6v6", "M12.5 3.5 5 11"],
  eye: ["M1.75 8C3.5 4.9 5.6 3.5 8 3.5S12.5 4.9 14.25 8c-1.75 3.1-3.85 4.5-6.25 4.5S3.5 11.1 1.75 8z", "M8 6.1a1.9 1.9 0 1 1 0 3.8 1.9 1.9 0 0 1 0-3.8"],
  paste: ["M5.5 3.5h-2v10h9v-10h-2", "M5.5 2.5h5v2.5h-5z"],
  sound: ["M2.5 6.25h2.25L8 3.5v9L4.75 9.75H2.5z", "M10.5 5.75a3.2 3.2 0 0 1 0 4.5", "M12.5 4a5.6 5.6 0 0 1 0 8"],
  terminal: ["M2.5 3h11v10h-11z", "m5 6 2 2-2 2", "M8.5 10H11"],
  file: ["M4 2h5l3.5 3.5V14H4z", "M9 2v3.5h3.5"],
} as const;

export type IconName = keyof typeof paths;

/** An icon, hidden from assistive technology: the text beside it or the button's label names it. */
export function icon(name: IconName): SVGElement {
  return svg(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", width: 16, height: 16, fill: "none", stroke: "currentColor", "stroke-width": 1.4, "aria-hidden": "true" },
    ...paths[name].map((d) => svg("path", { d, "stroke-linecap": "round", "stroke-linejoin": "round" })),
  );
}

/** The product logo: a gate. */
export function mark(): SVGElement {
  return svg(
    "svg",
    { class: "mark", viewBox: "0 0 32 32", width: 22, height: 22, "aria-hidden": "true" },
    svg("rect", { class: "mark-ground", width: 32, height: 32, rx: 7 }),
    svg("path", { class: "mark-arch", d: "M8 25V15a8 8 0 0 1 16 0v10h-4.5V15a3.5 3.5 0 0 0-7 0v10z" }),
    svg("path", { class: "mark-post", d: "M14.75 25v-6.5h2.5V25z" }),
  );
}
