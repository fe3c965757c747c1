/**
 * The host names of this gateway. With DNS rebinding, a foreign web page points its own name to our address, and browsers
 * then treat the gateway as part of that site. The `Host` header reveals such calls.
 */
import { networkInterfaces } from "node:os";
import type { Config } from "../../shared/config.ts";
import { SandgateError } from "../../shared/errors.ts";
import { hostAndPort } from "../../shared/util/host.ts";

/** Accepted `Host` values that are cached, so that the usual ones cost almost nothing. */
const rememberedMax = 1_000;
/** The machine's own addresses are looked up at most this often. */
const refreshMs = 5_000;

const loopback = ["localhost", "127.0.0.1", "[::1]"];

export class Hosts {
  /** Allowed ports by name; undefined allows any port, because proxies and port mappings change it. */
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

  /** @throws {SandgateError} `invalid_request` when `Host` is not a name of this gateway. */
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
    // Health checks call by IP address. Only pages served from here can have one of our addresses as their origin.
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
