/** Unpacks an archive inside a sandbox with the sandbox's own `tar`. */
import { stoppedBy } from "../../shared/abort.ts";
import { SandgateError } from "../../shared/errors.ts";
import type { Container } from "../runtime/container/container.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { endOf, startTool, toolFault } from "./tool.ts";

const failedExitCode = 45;
const reasonCharsMax = 200;

// $1 the archive, $2 the folder; prints the number of entries.
const program = `
[ -e "$2" ] && ! [ -d "$2" ] && exit 20
command -v tar >/dev/null || { echo "tar: not found" >&2; exit 127; }
mkdir -p -- "$2" && tar -x -v -p -f "$1" -C "$2" > "$1.list" && wc -l < "$1.list" || exit ${failedExitCode}
rm -f -- "$1" "$1.list"
`;

/**
 * @param signal aborts unpacking
 * @returns the number of files and folders in the archive
 * @throws {SandgateError} `unprocessable`, `insufficient_storage`, the reason of the signal.
 */
export async function unpack(oci: OciRuntime, container: Container, archive: string, folder: string, signal: AbortSignal): Promise<number> {
  const tool = await startTool(oci, container, program, [archive, folder], "none");
  const { exitCode, stdout, stderr } = await stoppedBy(
    signal,
    () => void tool.kill(),
    () => endOf(tool),
  );
  if (signal.aborted) throw SandgateError.from(signal.reason);
  if (exitCode !== 0) throw fault(exitCode, stderr, folder);
  return Number(stdout) || 0;
}

function fault(exitCode: number, stderr: string, folder: string): SandgateError {
  const known = toolFault(exitCode, stderr, folder);
  if (exitCode !== failedExitCode || known.code !== "unprocessable") return known;
  const [line = ""] = stderr.split("\n");
  return new SandgateError("unprocessable", `the archive could not be unpacked in ${folder}: ${line.slice(0, reasonCharsMax)}`, {
    reason: "bad_archive",
    cause: known.cause,
  });
}
