/**
 * Where a sandbox looks names up: its own /etc/resolv.conf, in memory, which it may change. Podman writes none for a container whose
 * network is attached from outside.
 */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isIPv4 } from "node:net";
import { join } from "node:path";
import { attempt } from "../../../shared/util/attempt.ts";
import { slirp } from "./network.ts";

/** The sandbox's root, who has other ids, passes the folder. */
const passable = 0o711;
const readable = 0o644;
const hostFile = "/etc/resolv.conf";

export class Resolvers {
  readonly #dir: string;

  /** @param dir is made when it is needed */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /** The file of a sandbox on the host. */
  of(sandboxId: string): string {
    return join(this.#dir, sandboxId);
  }

  /** Makes it for a container that starts, which then gets it as its own. */
  make(sandboxId: string): void {
    mkdirSync(this.#dir, { recursive: true });
    chmodSync(this.#dir, passable);
    const file = this.of(sandboxId);
    // Whoever had it before may have made it unwritable.
    rmSync(file, { force: true });
    writeFileSync(file, resolverText(attempt(() => readFileSync(hostFile, "utf8")) ?? ""));
    chmodSync(file, readable);
  }

  remove(sandboxId: string): void {
    rmSync(this.of(sandboxId), { force: true });
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
