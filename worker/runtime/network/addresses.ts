/** Resolves names, and tells whether an address is on the internet. */
import { BlockList, isIP, isIPv4 } from "node:net";
import { run } from "../process/run.ts";
import { closedRanges, hostAddresses } from "./network.ts";

const lookupTimeoutMs = 15_000;

/** The global IPv6 range, and the special ranges within it: https://www.iana.org/assignments/iana-ipv6-special-registry */
const globalIPv6 = subnets(["2000::/3"], "ipv6");
const specialIPv6 = subnets(["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"], "ipv6");
const specialIPv4 = subnets(closedRanges, "ipv4");

function subnets(ranges: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** Whether an address is on the internet and not one of this host. */
export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !specialIPv4.check(address, "ipv4") && !hostAddresses().includes(address);
  return isIP(address) === 6 && globalIPv6.check(address, "ipv6") && !specialIPv6.check(address, "ipv6");
}

/**
 * All addresses of a name, resolved as by every program of this host; empty for an unknown name. Runs as a separate program,
 * because a slow name server would hold up the worker's file operations.
 */
export async function addressesOf(host: string): Promise<string[]> {
  if (isIP(host)) return [host];
  const result = await run("getent", ["ahosts", "--", host], { timeoutMs: lookupTimeoutMs });
  const found = result.stdout.split("\n").map((line) => line.split(/\s/)[0] ?? "");
  return [...new Set(found.filter((address) => isIP(address.split("%")[0] ?? "")))];
}
