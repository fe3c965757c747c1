/** Which process listens on a port, as far as this user may know (proc(5), /proc/net/tcp). */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { attempt } from "../../shared/util/attempt.ts";
import { processIds } from "../../shared/util/proc.ts";
import { describeProcess } from "./processes.ts";

const listening = "0A";

/** Describes the process that listens on a port of this machine. */
export function portHolder(port: number): string {
  const sockets = ["tcp", "tcp6"].flatMap((table) => listenersIn(`/proc/net/${table}`, port));
  const pid = processIds().find((candidate) => filesOf(candidate).some((file) => sockets.some(({ inode }) => file === `socket:[${inode}]`)));
  if (pid !== undefined) return describeProcess(pid);
  return sockets[0] ? `a process of user ${sockets[0].uid}` : "another program";
}

function listenersIn(table: string, port: number): { uid: string; inode: string }[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return (attempt(() => readFileSync(table, "utf8")) ?? "")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[1]?.endsWith(wanted) && fields[3] === listening)
    .map((fields) => ({ uid: fields[7] ?? "", inode: fields[9] ?? "" }));
}

/** Processes may end meanwhile, and those of other users are not readable. */
function filesOf(pid: number): (string | undefined)[] {
  const folder = `/proc/${pid}/fd`;
  return (attempt(() => readdirSync(folder)) ?? []).map((file) => attempt(() => readlinkSync(`${folder}/${file}`)));
}
