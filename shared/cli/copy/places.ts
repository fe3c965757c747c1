/** The source and target of a copy. */
import { posix } from "node:path";
import { NotFoundError } from "../../client/errors.ts";
import type { SandboxHandle } from "../../client/sandbox.ts";
import type { ErrorReason } from "../../errors.ts";
import { CliError, UsageError } from "../failures.ts";

/** `SANDBOX:PATH`, a local path, or `-` for standard input or output. */
export type Place =
  | { readonly kind: "local"; readonly path: string }
  | { readonly kind: "remote"; readonly sandbox: string; readonly path: string }
  | { readonly kind: "stream" };

/** As in docker, a text with a slash or dot before the colon is a local path. */
export function parsePlace(text: string): Place {
  if (text === "-") return { kind: "stream" };
  const [, sandbox, path] = /^([^/.:][^/:]*):(.*)$/s.exec(text) ?? [];
  if (sandbox === undefined || path === undefined) return { kind: "local", path: text };
  if (!path.startsWith("/")) throw new UsageError(`the path in the sandbox must begin with /: ${text}`);
  return { kind: "remote", sandbox, path };
}

export type Kind = "file" | "folder" | "nothing";

/** What exists at a path in the sandbox. Links are followed. */
export async function remoteKind(sandbox: SandboxHandle, path: string): Promise<Kind> {
  try {
    return (await sandbox.stat(path)).type === "directory" ? "folder" : "file";
  } catch (error) {
    if (error instanceof NotFoundError && error.reason === ("no_such_file" satisfies ErrorReason)) return "nothing";
    throw error;
  }
}

/** Whether the path ends in `/.`, which means the content of the folder instead of the folder itself. */
export const meansContent = (path: string): boolean => /(^|\/)\.\/*$/.test(path);

/**
 * The path of the copy: below an existing folder, under the source's own name; otherwise the given path.
 *
 * @param join the path join function of the target's side
 */
export function targetPath(
  source: { path: string; base: string; kind: Kind },
  target: { path: string; kind: Kind },
  join: (...parts: string[]) => string,
): string {
  if (target.kind === "file" && source.kind === "folder") throw new CliError(`a folder cannot be copied over the file ${target.path}`);
  if (target.kind === "nothing" && source.kind === "file" && target.path.endsWith("/")) throw new CliError(`there is no folder ${target.path}`);
  if (target.kind !== "folder" || meansContent(source.path)) return target.path;
  return join(target.path, source.base);
}

export const remoteBase = (path: string): string => posix.basename(posix.resolve("/", path)) || "root";
