/** Uploads with progress, which only XMLHttpRequest reports. */
import { errorOfAnswer } from "../../../../../shared/client/errors.ts";
import { callerHeaders, report, unreachable } from "../../api.ts";

export interface Upload {
  readonly id: string;
  readonly path: string;
  readonly file: File;
  readonly signal: AbortSignal;
  /** Called with the sent share of the file, from 0 to 1. */
  readonly onProgress: (share: number) => void;
}

/** @throws {APIError} with the server's message; {APIConnectionError} when the connection breaks. */
export function uploadFile({ id, path, file, signal, onProgress }: Upload): Promise<{ path: string; size: number }> {
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
