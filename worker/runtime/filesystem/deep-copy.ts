/**
 * Copies a folder with paths that are longer than the kernel takes in one piece, at which `cp` fails: it names everything
 * from the top. A piece here is what lies down to some depth; each folder at that depth is the top of another piece, reached
 * by an open descriptor instead of by its name. Nothing may run in the folder meanwhile.
 */
import { type RunResult, runBulk } from "../process/run.ts";

const timeoutMs = 3_600_000;
/** Bytes of a path from the top of its piece, with room below PATH_MAX for what stands before it. */
const pathBytesMax = 3_500;

const attributes = ["--numeric-owner", "--xattrs", "--xattrs-include='*'"].join(" ");

/** Descriptors 3 and 4 are the top of the piece and of its copy. The folders below are done by the same script, from `find`. */
const piece = `
set -eo pipefail
env --chdir=/proc/self/fd/3 find . -xdev -maxdepth "$depth" -print0 |
  env --chdir=/proc/self/fd/3 tar --create --format=posix --sparse --no-recursion ${attributes} --null --files-from=- |
  env --chdir=/proc/self/fd/4 tar --extract --same-owner --same-permissions ${attributes}
env --chdir=/proc/self/fd/3 find . -xdev -mindepth "$depth" -maxdepth "$depth" -type d -not -empty -exec bash -c '
  for top; do (exec 3< "/proc/self/fd/3/$top" 4< "/proc/self/fd/4/$top"; eval "$piece") || exit; done' bash {} +
`;

/** How deep a piece may be follows from the longest name. */
const script = `
set -eo pipefail
longest=$(find "$1" -xdev -printf '%f\\n' | LC_ALL=C awk 'length > n { n = length } END { print n + 1 }')
export depth=$((${pathBytesMax} / longest)) piece=$3
exec 3< "$1" 4< "$2"
eval "$piece"
`;

/** As a result: what `tar` says of a full disk is told by whoever asked for the copy. */
export function copyDeepTree(from: string, to: string): Promise<RunResult> {
  return runBulk("setpriv", ["--pdeathsig", "KILL", "bash", "-c", script, "bash", from, to, piece], { timeoutMs });
}
