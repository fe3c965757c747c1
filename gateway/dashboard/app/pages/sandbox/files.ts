/** Uploads files to the sandbox and downloads them. */

import { errorOfAnswer } from "../../../../../shared/client/errors.ts";
import { callerHeaders, errorOf, ownAddress, report, unreachable } from "../../api.ts";
import { errorNotice, formOf } from "../../components/bits.ts";
import { button } from "../../components/button.ts";
import { checkbox, field, focusProblem } from "../../components/field.ts";
import { icon } from "../../components/icons.ts";
import type { Panel } from "../../components/tabs.ts";
import { fill, h, uniqueId } from "../../dom.ts";
import { bytes } from "../../format.ts";

export function filesPanel(id: string, signal: AbortSignal): Panel {
  const element = h("div", "stack", h("h2", "visually-hidden", "Files"), h("div", "two-cards", uploadCard(id, signal), downloadCard(id, signal)));
  return { element };
}

function uploadCard(id: string, signal: AbortSignal): HTMLElement {
  const inputId = uniqueId("file");
  const input = h("input", { id: inputId, type: "file", class: "file-input" });
  const chosen = h("span", "drop-words", "Choose a file or drop it here");
  const drop = h("label", { class: "drop", for: inputId }, icon("upload"), chosen);
  const path = field({ label: "Path in the sandbox", attributes: { class: "input mono", placeholder: "/work/data.csv" } });
  const result = h("div", "form-trouble");
  const progress = h("progress", { class: "progress", max: 1, value: 0, "aria-label": "Upload", hidden: true });
  const send = button({ label: "Upload", icon: "upload", kind: "primary", type: "submit" });
  let file: File | undefined;
  let suggested = "";
  const choose = (given: File | undefined): void => {
    if (!given) return;
    file = given;
    chosen.textContent = `${given.name} (${bytes(given.size)})`;
    fill(result);
    if (path.value === suggested) path.input.value = suggested = `/work/${given.name}`;
  };
  input.addEventListener("change", () => choose(input.files?.[0]));
  takeDrops(drop, choose);
  const submit = async (): Promise<void> => {
    if (!file) return void fill(result, errorNotice(new Error("Choose a file first.")));
    path.complain(path.value.startsWith("/") ? "" : "Enter an absolute path.");
    if (focusProblem([path])) return;
    progress.hidden = false;
    try {
      const { path: where, size } = await uploadFile({ id, path: path.value, file, signal, onProgress: (share) => (progress.value = share) });
      fill(result, h("div", { class: "notice success", role: "status" }, icon("check"), h("div", {}, `${bytes(size)} written to `, h("code", {}, where))));
    } finally {
      progress.hidden = true;
      progress.value = 0;
    }
  };
  return formCard("Upload", [h("div", "drop-frame", input, drop), path.element, progress, result, h("div", {}, send)], result, send, submit);
}

function downloadCard(id: string, signal: AbortSignal): HTMLElement {
  const path = field({ label: "Path in the sandbox", attributes: { class: "input mono", placeholder: "/work/result.json" } });
  const archive = checkbox("A folder, as a tar archive");
  const result = h("div", "form-trouble");
  const send = button({ label: "Download", icon: "download", kind: "primary", type: "submit" });
  const submit = async (): Promise<void> => {
    path.complain(path.value.startsWith("/") ? "" : "Enter an absolute path.");
    if (focusProblem([path])) return;
    const query = `path=${encodeURIComponent(path.value)}${archive.input.checked ? "&archive=tar" : ""}`;
    const address = ownAddress(`/v1/sandboxes/${encodeURIComponent(id)}/download?${query}`).href;
    await checkDownload(address, signal);
    // The browser saves the file, which may be larger than the page could hold.
    const link = h("a", { href: address, download: true });
    link.click();
  };
  return formCard("Download", [path.element, archive.element, result, h("div", {}, send)], result, send, submit);
}

/** Checks before a download, because the browser would save an error as the file. @throws {APIError} with the server's message. */
async function checkDownload(address: string, signal: AbortSignal): Promise<void> {
  const head = await fetch(address, { method: "HEAD", headers: callerHeaders("HEAD"), signal });
  if (head.ok) return;
  // HEAD has no body, so a GET fetches the error message.
  const stop = new AbortController();
  const response = await fetch(address, { headers: callerHeaders("GET"), signal: AbortSignal.any([signal, stop.signal]) });
  if (response.ok) return stop.abort();
  throw report(await errorOf(response));
}

function formCard(title: string, content: HTMLElement[], result: HTMLElement, send: HTMLButtonElement, submit: () => Promise<void>): HTMLElement {
  return h("section", { class: "card padded", "aria-label": title }, formOf("stack", [h("h3", {}, title), ...content], result, send, submit));
}

function takeDrops(place: HTMLElement, take: (file: File | undefined) => void): void {
  const over = (is: boolean) => (event: DragEvent) => {
    event.preventDefault();
    place.classList.toggle("over", is);
  };
  place.addEventListener("dragover", over(true));
  place.addEventListener("dragleave", over(false));
  place.addEventListener("drop", (event) => {
    over(false)(event);
    take(event.dataTransfer?.files[0]);
  });
}

interface Upload {
  readonly id: string;
  readonly path: string;
  readonly file: File;
  readonly signal: AbortSignal;
  /** Called with the sent share of the file, from 0 to 1. */
  readonly onProgress: (share: number) => void;
}

/** @throws {APIError} with the server's message; {APIConnectionError} when the connection breaks. */
function uploadFile({ id, path, file, signal, onProgress }: Upload): Promise<{ path: string; size: number }> {
  const request = new XMLHttpRequest();
  request.open("POST", `/v1/sandboxes/${encodeURIComponent(id)}/upload?path=${encodeURIComponent(path)}`);
  for (const [name, value] of Object.entries(callerHeaders("POST"))) request.setRequestHeader(name, value);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total ? loaded / total : 1));
  signal.addEventListener("abort", () => request.abort());
  return new Promise((resolve, reject) => {
    request.addEventListener("error", () => reject(unreachable()));
    request.addEventListener("abort", () => reject(new DOMException("The page was left.", "AbortError")));
    request.addEventListener("load", () => {
      if (request.status < 300) return resolve(JSON.parse(request.responseText) as { path: string; size: number });
      reject(report(errorOfAnswer(request.status, new Headers(), request.responseText)));
    });
    request.send(file);
  });
}
