/** Moving files in and out of sandboxes in tests, and seeing what a transfer leaves behind. */
import { createHash } from "node:crypto";
import type { Answer, Api } from "./api.ts";
import { until } from "./until.ts";

export const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** A raw upload; `query` is appended as it is. */
export async function uploadRaw(api: Api, id: string, path: string, bytes: Uint8Array | string | ReadableStream<Uint8Array>, query = ""): Promise<Answer> {
  const response = await api.raw("POST", `/v1/sandboxes/${id}/upload?path=${encodeURIComponent(path)}${query}`, bytes as never, {
    "content-type": "application/octet-stream",
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> };
}

/** A multipart upload with its fields in the order given. */
export async function uploadForm(api: Api, id: string, fields: [name: string, value: string | Blob][], query = ""): Promise<Answer> {
  const form = new FormData();
  for (const [name, value] of fields) {
    if (typeof value === "string") form.append(name, value);
    else form.append(name, value, "name in the form");
  }
  const response = await api.raw("POST", `/v1/sandboxes/${id}/upload${query}`, form);
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> };
}

/** A download: its bytes as a buffer, or the parsed error. */
export async function download(api: Api, id: string, path: string, query = ""): Promise<Answer<Buffer> & { error: Answer }> {
  const response = await api.raw("GET", `/v1/sandboxes/${id}/download?path=${encodeURIComponent(path)}${query}`);
  const body = Buffer.from(await response.arrayBuffer());
  const { status, headers } = response;
  const isJson = headers.get("content-type")?.includes("json");
  return { status, headers, body, error: { status, headers, body: isJson ? JSON.parse(body.toString()) : {} } };
}

/** What a process is called that sends a file from a sandbox without a program of it. */
export const sender = ".sandgate-file";

/** The names of all processes in the sandbox but those that are always there, or belong to this call. */
export async function processes(api: Api, id: string): Promise<string[]> {
  const { stdout } = await api.execute(
    id,
    'for f in /proc/[0-9]*/comm; do { read -r name < "$f" && echo "$(dirname "$f") $name"; } 2>/dev/null; done; echo "self $$"',
  );
  const lines = stdout.trim().split("\n");
  const self = lines.at(-1)?.split(" ")[1];
  return lines
    .slice(0, -1)
    .filter((line) => !line.startsWith(`/proc/${self} `) && (line.endsWith(sender) || !line.includes(".sandgate-")))
    .map((line) => line.split(" ")[1] ?? "");
}

/** Resolves when no transfer has a process in the sandbox, nor a temporary file in these folders. */
export async function untilNothingIsLeft(api: Api, id: string, ...folders: string[]): Promise<void> {
  let left = "";
  await until("nothing of the transfer is left", async () => {
    const running = await processes(api, id);
    const { stdout } = await api.execute(id, `ls -A ${["/tmp", ...folders].join(" ")} 2>/dev/null | grep sandgate-upload`);
    left = [...running, stdout].join(" ").trim();
    return left === "";
  }).catch((error: unknown) => {
    throw new Error(`${error}: ${left}`);
  });
}
