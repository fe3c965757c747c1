/** System V shared memory of a container: segments that outlive their processes and are visible only in its IPC namespace. */
import { run } from "../process/run.ts";

const timeoutMs = 10_000;
/** Columns of /proc/sysvipc/shm: pages in memory and in swap, in bytes. */
const countedColumns = ["rss", "swap"];

/** Bytes of all segments; undefined when the container is gone. */
export async function segmentBytes(initPid: number): Promise<number | undefined> {
  // The file shows the namespace of its reader, wherever /proc is mounted.
  const result = await run("nsenter", ["--ipc", "--target", String(initPid), "--", "cat", "/proc/sysvipc/shm"], { timeoutMs });
  return result.exitCode === 0 ? sumOf(result.stdout) : undefined;
}

/** The sum of the counted columns over all segments. */
export function sumOf(table: string): number {
  const [heading = "", ...rows] = table.trim().split("\n");
  const names = heading.trim().split(/\s+/);
  const indexes = countedColumns.map((name) => names.indexOf(name)).filter((index) => index >= 0);
  return rows.reduce((sum, row) => {
    const cells = row.trim().split(/\s+/);
    return sum + indexes.reduce((bytes, index) => bytes + Number(cells[index] ?? 0), 0);
  }, 0);
}
