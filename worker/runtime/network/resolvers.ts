/** Where a sandbox looks names up. Podman says nothing of that to a container whose network is attached from outside. */
import { isIPv4 } from "node:net";
import { slirp } from "./network.ts";

/**
 * The text of its /etc/resolv.conf: the network's own resolver first, then what the host has, as Podman writes it, without servers that
 * only the host reaches, and IPv6.
 */
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
