/**
 * Where a sandbox looks names up: its own /etc/resolv.conf, in memory, which it may change. Podman writes none for a container whose
 * network is attached from outside.
 */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { isIPv4 } from "node:net";
import { attempt } from "../../../shared/util/attempt.ts";
import { MountedPath, makePassable, readable } from "../container/mounted-path.ts";
import { slirp } from "./network.ts";

const hostFile = "/etc/resolv.conf";

export class Resolvers extends MountedPath {
  /** The container gets the file as its own. */
  override make(sandboxId: string): void {
    makePassable(this.dir);
    // Whoever had it before may have made it unwritable.
    this.remove(sandboxId);
    writeFileSync(this.of(sandboxId), resolverText(attempt(() => readFileSync(hostFile, "utf8")) ?? ""));
    chmodSync(this.of(sandboxId), readable);
  }
}

/** The network's own resolver first, then what the host has, as Podman writes it: without servers that only the host reaches, and IPv6. */
export function resolverText(host: string): string {
  const lines = host.split("\n").map((line) => line.trim().split(/\s+/));
  const all = (keyword: string): string[] => lines.flatMap(([first, ...words]) => (first === keyword ? words : []));
  const servers = [slirp.resolver, ...all("nameserver").filter((address) => isIPv4(address) && !address.startsWith("127."))];
  const [searches, options] = [all("search"), all("options")];
  return [
    ...(searches.length > 0 ? [`search ${searches.join(" ")}`] : []),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length > 0 ? [`options ${options.join(" ")}`] : []),
    "",
  ].join("\n");
}
