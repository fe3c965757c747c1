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

/** What is a container's own, and becomes its copy's. */
export interface Own {
  readonly hostname: string;
  /** As `boundedByUser` has them. */
  readonly bounds: readonly string[];
  readonly devices: readonly Device[];
  readonly routes: readonly Route[];
  /** For nft(8). */
  readonly rules: string;
}

// Each is one start of a program, with the namespaces to enter, in place of one for every command in it.
const readOwn = "hostname; ip -json address; ip -json -4 route; nft --stateless list ruleset";
const writeBounds = 'while [ $# -gt 0 ]; do echo "$2" > "$1"; shift 2; done';
const begin = 'hostname -- "$1"; ip link set lo up; if [ -n "$2" ]; then printf "%s\\n" "$2" | nft -f -; fi';
const joinNetwork = 'printf "%s\\n" "$1" | ip -batch -';

/** Reads what is a container's own, which does not change before it is copied. @throws {CommandError | Refusal} */
export async function ownOf(container: number): Promise<Own> {
  const [said, bounds] = await Promise.all([inside(container, ["uts", "net"], "sh", "-euc", readOwn), inside(container, ["user"], "cat", ...boundedByUser)]);
  const [hostname = "", addresses = "", routes = "", ...rules] = said.split("\n");
  const devices = waysOut(JSON.parse(addresses) as Device[]);
  const own = { hostname, bounds: bounds.split("\n"), devices, routes: JSON.parse(routes) as Route[], rules: rules.join("\n") };
  if (devices.length > 0 && !areRules(own.rules)) throw withoutRules("container");
  return own;
}

/** @throws {CommandError} the copy must not run then */
export async function settle({ copy, container }: Pair, { hostname, bounds, devices, routes, rules }: Own): Promise<void> {
  const pairs = boundedByUser.flatMap((file, index) => [file, bounds[index] ?? ""]);
  await Promise.all([
    inside(copy, ["user"], "sh", "-euc", writeBounds, "sh", ...pairs),
    // What its network may reach comes before the network.
    inside(copy, ["uts", "net"], "sh", "-euc", begin, "sh", hostname, devices.length > 0 ? rules : ""),
  ]);
  await move({ copy, container }, devices, routes);
}

/**
 * Gives a running copy the network of its container, which has been given one again.
 *
 * @param isStill whether both are still those that were checked
 * @throws {CommandError | Refusal}
 */
export async function connect(pair: Pair, isStill: () => boolean): Promise<void> {
  const { devices, routes } = await ownOf(pair.container);
  if (devices.length === 0) throw new Refusal("refused", "the container has no network");
  if (!areRules(await inside(pair.copy, ["net"], "nft", "--stateless", "list", "ruleset"))) throw withoutRules("copy");
  if (!isStill()) throw new Refusal("refused", "the sandbox has ended");
  await move(pair, devices, routes);
}

const areRules = (rules: string): boolean => /^\s*chain output/m.test(rules);

const withoutRules = (what: string): Refusal => new Refusal("refused", `the ${what} has no rules for what its network may reach`);

async function move({ copy, container }: Pair, devices: readonly Device[], routes: readonly Route[]): Promise<void> {
  if (devices.length === 0) return;
  const moves = devices.map(({ ifname }) => `link set ${ifname} netns ${copy}`);
  await inside(container, ["net"], "sh", "-euc", joinNetwork, "sh", moves.join("\n"));
  await inside(copy, ["net"], "sh", "-euc", joinNetwork, "sh", devices.flatMap((device) => commandsFor(device, routes)).join("\n"));
}

const inside = (pid: number, namespaces: readonly ("uts" | "user" | "net")[], ...command: string[]): Promise<string> =>
  run(["nsenter", "--target", String(pid), ...namespaces.map((name) => `--${name}`), "--", ...command], options);

/** Devices that lead out of a namespace. @throws {Refusal} for one that no sandbox has */
export function waysOut(devices: readonly Device[]): Device[] {
  const found = devices.filter(({ ifname, flags }) => ifname !== "lo" && flags.includes("UP"));
  const odd = found.find(({ ifname }) => !deviceName.test(ifname));
  if (odd) throw new Refusal("refused", `a network device has an unusual name: ${JSON.stringify(odd.ifname)}`);
  return found;
}

/** Lines of ip(8) that give a device what it had before it was moved. */
export function commandsFor({ ifname, mtu, addr_info }: Device, routes: readonly Route[]): string[] {
  const addresses = addr_info.filter(({ family, local }) => family === "inet" && isIPv4(local));
  const ways = routes.filter(({ dev, dst, gateway }) => dev === ifname && dst === "default" && gateway !== undefined && isIPv4(gateway));
  return [
    ...addresses.map(({ local, prefixlen }) => `address add ${local}/${Number(prefixlen)} dev ${ifname}`),
    `link set ${ifname} mtu ${Number(mtu)} up`,
    ...ways.map(({ gateway = "" }) => `route add default via ${gateway} dev ${ifname}`),
  ];
}
