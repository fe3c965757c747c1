/**
 * The names of this gateway. A page of any site can make its own name lead to our address and then call us as what
 * browsers take for that same site (DNS rebinding): the `Host` of such a call gives it away.
 */
import { networkInterfaces } from "node:os";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import { hostAndPort } from "../../shared/util/host.ts";

/** Accepted headers that are remembered, so that the usual ones cost next to nothing. */
const rememberedMax = 1_000;
/** The machine's own addresses are looked up at most this often. */
const refreshMs = 5_000;

const loopback = ["localhost", "127.0.0.1", "[::1]"];

export class Hosts {
  /** By name, the ports under which it may be called; undefined for any: proxies and port mappings change them. */
  readonly #names = new Map<string, ReadonlySet<number | undefined>>();
  readonly #remembered = new Set<string>();
  #ownAddresses: ReadonlySet<string> = new Set();
  #refreshedAtMs = Number.NEGATIVE_INFINITY;

  constructor({ host, metricsHost, publicUrl, allowedHosts }: Pick<Config, "host" | "metricsHost" | "publicUrl" | "allowedHosts">) {
    const listening = [host, metricsHost].map((name) => (name.includes(":") ? `[${name}]` : name));
    const ofUrl = URL.canParse(publicUrl) ? [new URL(publicUrl).hostname] : [];
    for (const text of [...loopback, ...listening, ...ofUrl, ...allowedHosts]) {
      const { name, port } = hostAndPort(text) ?? {};
      if (name !== undefined) this.#names.set(name, new Set([...(this.#names.get(name) ?? []), port]));
    }
  }

  /** @throws {SandgateError} `invalid_request` for a `Host` that is none of the gateway's names. */
  refuseForeign(host: string): void {
    if (this.#remembered.has(host)) return;
    if (!this.#isOwn(host)) {
      throw new SandgateError("invalid_request", `Host ${JSON.stringify(host.slice(0, 255))} is not a name of this gateway; set SANDGATE_ALLOWED_HOSTS`);
    }
    if (this.#remembered.size >= rememberedMax) this.#remembered.clear();
    this.#remembered.add(host);
  }

  #isOwn(host: string): boolean {
    const { name, port } = hostAndPort(host) ?? {};
    if (name === undefined) return false;
    const ports = this.#names.get(name);
    if (ports) return ports.has(undefined) || ports.has(port);
    // Health checks call by address. No page can have one of ours as its origin but those that come from here.
    return this.#addresses().has(name);
  }

  #addresses(): ReadonlySet<string> {
    const now = performance.now();
    if (now - this.#refreshedAtMs > refreshMs) {
      this.#refreshedAtMs = now;
      const all = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
      this.#ownAddresses = new Set(all.map(({ address, family }) => (family === "IPv6" ? `[${address}]` : address)));
    }
    return this.#ownAddresses;
  }
}
