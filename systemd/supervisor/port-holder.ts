/** Which process listens on a port, as far as this user may know (proc(5), /proc/net/tcp). */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { describeProcess } from "./processes.ts";

const listening = "0A";

/** Describes the process that listens on a port of this machine. */
export function portHolder(port: number): string {
  const sockets = ["tcp", "tcp6"].flatMap((table) => listenersIn(`/proc/net/${table}`, port));
  const pid = processes().find((candidate) => filesOf(candidate).some((file) => sockets.some(({ inode }) => file === `socket:[${inode}]`)));
  if (pid !== undefined) return describeProcess(Number(pid));
  return sockets[0] ? `a process of user ${sockets[0].uid}` : "another program";
}

function listenersIn(table: string, port: number): { uid: string; inode: string }[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return unlessGone(() => readFileSync(table, "utf8"), "")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[1]?.endsWith(wanted) && fields[3] === listening)
    .map((fields) => ({ uid: fields[7] ?? "", inode: fields[9] ?? "" }));
}

const processes = (): string[] => readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));

function filesOf(pid: string): string[] {
  const folder = `/proc/${pid}/fd`;
  return unlessGone(() => readdirSync(folder), []).map((file) => unlessGone(() => readlinkSync(`${folder}/${file}`), ""));
}

/** Processes may end meanwhile, and those of other users are not readable. */
function unlessGone<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
