/**
 * Copies a folder with paths longer than the kernel accepts at once. `cp` fails on these, because it names everything from the
 * top. Here the tree is split into pieces of limited depth: each folder at that depth is the top of another piece, reached by
 * an open descriptor instead of its name. Nothing may run in the folder meanwhile.
 */
import { runBulk } from "../process/run.ts";
import { failure } from "./tree.ts";

const timeoutMs = 3_600_000;
/** The most bytes of a path from the top of its piece, leaving room below PATH_MAX for what precedes it. */
const pathBytesMax = 3_500;

const attributes = ["--numeric-owner", "--xattrs", "--xattrs-include='*'"].join(" ");

/** Descriptors 3 and 4 are the top of the piece and of its copy. `find` runs the same script for the folders below. */
const piece = `
set -eo pipefail
env --chdir=/proc/self/fd/3 find . -xdev -maxdepth "$depth" -print0 |
  env --chdir=/proc/self/fd/3 tar --create --format=posix --sparse --no-recursion ${attributes} --null --files-from=- |
  env --chdir=/proc/self/fd/4 tar --extract --same-owner --same-permissions ${attributes}
env --chdir=/proc/self/fd/3 find . -xdev -mindepth "$depth" -maxdepth "$depth" -type d -not -empty -exec bash -c '
  for top; do (exec 3< "/proc/self/fd/3/$top" 4< "/proc/self/fd/4/$top"; eval "$piece") || exit; done' bash {} +
`;

/** The longest name determines how deep a piece may be. */
const script = `
set -eo pipefail
longest=$(find "$1" -xdev -printf '%f\\n' | LC_ALL=C awk 'length > n { n = length } END { print n + 1 }')
export depth=$((${pathBytesMax} / longest)) piece=$3
exec 3< "$1" 4< "$2"
eval "$piece"
`;

/**
 * Like `copyTree`, for a folder with paths of any length in which nothing runs; blocks are not shared.
 *
 * @throws {SandgateError} `insufficient_storage`, `internal_error`.
 */
export async function copyStillTree(from: string, to: string): Promise<void> {
  const result = await runBulk("setpriv", ["--pdeathsig", "KILL", "bash", "-c", script, "bash", from, to, piece], { timeoutMs });
  if (result.exitCode !== 0) throw failure("copy the files of the sandbox", result.stderr);
}
