/**
 * What a sandbox with outbound access can reach: the internet and its own network's resolver, but never the host, the LAN,
 * link-local or metadata addresses. The rules live in the sandbox's network namespace, and the sandbox has no capability to
 * change them.
 */
import { isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import type { Host } from "../host/host.ts";

/**
 * IPv4 ranges that are not the internet: https://www.iana.org/assignments/iana-ipv4-special-registry. They include the addresses
 * at which clouds serve credentials and metadata to their machines, such as 169.254.169.254 (AWS, Google, Azure, Oracle, IBM,
 * DigitalOcean, OpenStack and others), 169.254.170.2 (AWS containers), 100.100.100.200 (Alibaba) and 192.0.0.192 (Oracle).
 */
const privateRanges = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
];

/** Internet addresses at which a cloud serves its own machines: Azure's platform. */
const cloudAddresses = ["168.63.129.16/32"];

/** Where neither a sandbox's traffic nor a registry that the operator has not named may lead. */
export const closedRanges: readonly string[] = [...privateRanges, ...cloudAddresses];

/** The addresses in a namespace whose network slirp4netns carries: its own, and those of the host's loopback and of a resolver. */
export const slirp = { own: "10.0.2.100", host: "10.0.2.2", resolver: "10.0.2.3" } as const;

/** The resolver that slirp4netns or pasta (169.254.1.1) offers inside the namespace. */
const resolvers = [slirp.resolver, "169.254.1.1"];

/** The host's own public addresses. */
export function hostAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address).filter((address) => isIPv4(address)));
}

/**
 * Whether the worker attaches the network of such a container from outside, and Podman makes none. gVisor takes over the network that
 * is there when it starts, so there Podman makes it.
 */
export const isAttached = (
  { network: program }: Pick<Host, "network">,
  { network, isolation }: { readonly network: "none" | "outbound"; readonly isolation: Isolation },
): boolean => network === "outbound" && isolation === "standard" && program.startsWith("slirp4netns");

/** Whether a network namespace is newly created, or may already hold our rules. */
export type Namespace = "new" | "used";

/**
 * The rules in nft's format. Replacing existing rules takes the kernel several times as long as adding new ones.
 *
 * @param open nft rules that come first, such as `ip daddr 10.0.0.1 tcp dport 3128 accept`
 */
export function nftRules(host: readonly string[], namespace: Namespace, open: readonly string[] = []): string {
  return [
    ...(namespace === "used" ? ["table inet sandgate {}", "delete table inet sandgate"] : []),
    "table inet sandgate {",
    `  set closed { type ipv4_addr; flags interval; auto-merge; elements = { ${[...closedRanges, ...host].join(", ")} } }`,
    "  chain output {",
    "    type filter hook output priority 0; policy accept;",
    '    oifname "lo" accept',
    ...open.map((rule) => `    ${rule}`),
    `    ip daddr { ${resolvers.join(", ")} } meta l4proto { tcp, udp } th dport 53 accept`,
    "    ip daddr @closed reject",
    "    meta nfproto ipv6 reject",
    "  }",
    "}",
    "",
  ].join("\n");
}

/** The same without nftables: unreachable routes, which are effective as long as the sandbox cannot use raw sockets. */
export function refusingRoutes(host: readonly string[]): string {
  return [...closedRanges.filter((range) => range !== "127.0.0.0/8"), ...host.filter((address) => !address.startsWith("127."))]
    .map((range) => `route replace unreachable ${range}\n`)
    .join("");
}

/** The program that closes the private ranges in the network namespace in which it runs, and what it reads. */
export const closingProgram = (
  { networkFilter }: Pick<Host, "networkFilter">,
  namespace: Namespace,
): { readonly command: readonly string[]; readonly input: string } =>
  networkFilter === "nft"
    ? { command: ["nft", "-f", "-"], input: nftRules(hostAddresses(), namespace) }
    : { command: ["ip", "-batch", "-"], input: refusingRoutes(hostAddresses()) };
