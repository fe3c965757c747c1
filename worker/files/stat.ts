/** Looks up what exists at a path. */

import type { Reply } from "../../shared/bus/contract/contract.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Container } from "../runtime/container/container.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { runTool } from "./tool.ts";

const look = `
[ -e "$1" ] || exit 44
if [ -d "$1" ]; then type=directory; elif [ -f "$1" ]; then type=file; else type=other; fi
stat -L -c "$type %s %a %Y" -- "$1"
`;

/** Follows symbolic links. @throws {SandgateError} `not_found` when nothing exists there, `unprocessable`. */
export async function statFile(oci: OciRuntime, container: Container, path: string): Promise<Reply<"stat">> {
  const [, type, size, mode = "", seconds] =
    /^(file|directory|other) (\d{1,15}) ([0-7]{1,4}) (-?\d{1,12})\n$/.exec(await runTool(oci, container, look, [path], path)) ?? [];
  // The programs belong to the sandbox, so their output is not trusted.
  if (type === undefined) throw new SandgateError("unprocessable", `the file could not be accessed: ${path}`, { reason: "inaccessible" });
  return { type: type as Reply<"stat">["type"], size: Number(size), mode: mode.padStart(3, "0"), modified_at_ms: Number(seconds) * 1_000 };
}
