/**
 * Makes a copy a sandbox of its own, after its processes are there and before any of them runs: its name, its network with what
 * that may reach, and the bounds of its users. All of it is that of its own container, which has been made and not started.
 *
 * The namespaces of a copy are not below the worker's, so the worker could do none of this. The network is the container's own: the
 * device at whose other end slirp4netns or pasta is moves from the container's namespace to that of the copy.
 */
import { isIPv4 } from "node:net";
import { run } from "../../base/run.ts";
import { searchPath } from "../../base/search-path.mjs";
import { Refusal } from "../refusal.ts";

const options = { env: { PATH: searchPath, LC_ALL: "C" }, cwd: "/", timeoutMs: 10_000 };
const boundedByUser = ["max_inotify_instances", "max_inotify_watches"].map((name) => `/proc/sys/user/${name}`);
const deviceName = /^[a-z][\w.-]{0,14}$/i;

interface Pair {
  /** The first process of the copy. */
  readonly copy: number;
  /** That of its container. */
  readonly container: number;
}

/** A network device, as ip-address(8) describes it with `-json`. */
export interface Device {
  readonly ifname: string;
  readonly mtu: number;
  readonly flags: readonly string[];
  readonly addr_info: readonly { readonly family: string; readonly local: string; readonly prefixlen: number }[];
}

/** A route, as ip-route(8) describes it. */
export interface Route {
  readonly dst: string;
  readonly dev: string;
  readonly gateway?: string;
}

/** @throws {CommandError | Refusal} the copy must not run then */
export async function settle({ copy, container }: Pair): Promise<void> {
  const hostname = await inside(container, "uts", "hostname");
  await inside(copy, "uts", "hostname", "--", hostname.trim());
  const bounds = (await inside(container, "user", "cat", ...boundedByUser)).split("\n");
  const pairs = boundedByUser.flatMap((file, index) => [file, bounds[index] ?? ""]);
  await inside(copy, "user", "sh", "-euc", 'while [ $# -gt 0 ]; do echo "$2" > "$1"; shift 2; done', "sh", ...pairs);
  await inside(copy, "net", "ip", "link", "set", "lo", "up");
  await moveNetwork({ copy, container });
}

const inside = (pid: number, namespace: "uts" | "user" | "net", ...command: string[]): Promise<string> =>
  run(["nsenter", "--target", String(pid), `--${namespace}`, "--", ...command], options);

async function moveNetwork({ copy, container }: Pair): Promise<void> {
  const devices = waysOut(JSON.parse(await inside(container, "net", "ip", "-json", "address")) as Device[]);
  if (devices.length === 0) return;
  // What they may reach comes first.
  const rules = await inside(container, "net", "nft", "--stateless", "list", "ruleset");
  if (!/^\s*chain output/m.test(rules)) throw new Refusal("refused", "the container has no rules for what its network may reach");
  await inside(copy, "net", "sh", "-euc", 'printf "%s\\n" "$1" | nft -f -', "sh", rules);
  const routes = JSON.parse(await inside(container, "net", "ip", "-json", "-4", "route")) as Route[];
  for (const { ifname } of devices) await inside(container, "net", "ip", "link", "set", ifname, "netns", String(copy));
  for (const command of devices.flatMap((device) => commandsFor(device, routes))) await inside(copy, "net", "ip", ...command);
}

/** Devices that lead out of a namespace. @throws {Refusal} for one that no sandbox has */
export function waysOut(devices: readonly Device[]): Device[] {
  const found = devices.filter(({ ifname, flags }) => ifname !== "lo" && flags.includes("UP"));
  const odd = found.find(({ ifname }) => !deviceName.test(ifname));
  if (odd) throw new Refusal("refused", `a network device has an unusual name: ${JSON.stringify(odd.ifname)}`);
  return found;
}

/** Arguments of ip(8) that give a device what it had before it was moved. */
export function commandsFor({ ifname, mtu, addr_info }: Device, routes: readonly Route[]): string[][] {
  const addresses = addr_info.filter(({ family, local }) => family === "inet" && isIPv4(local));
  const ways = routes.filter(({ dev, dst, gateway }) => dev === ifname && dst === "default" && gateway !== undefined && isIPv4(gateway));
  return [
    ...addresses.map(({ local, prefixlen }) => ["address", "add", `${local}/${Number(prefixlen)}`, "dev", ifname]),
    ["link", "set", ifname, "mtu", String(Number(mtu)), "up"],
    ...ways.map(({ gateway = "" }) => ["route", "add", "default", "via", gateway, "dev", ifname]),
  ];
}
