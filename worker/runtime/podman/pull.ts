/**
 * Pulls images with Podman. A registry's answers may lead anywhere: they redirect, name other servers to ask for tokens, and its
 * name may get another address right after it was checked. So Podman pulls in a network of its own, closed like those of
 * sandboxes, and therefore as a program of its own, not through the service, which has the host's network. Only registries that
 * the operator trusts are reached from the host's network.
 */
import { mkdir, mkdtemp, readdir, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { type Config, proxies } from "../../../shared/config.ts";
import { SandgateError } from "../../../shared/errors.ts";
import { hostOf, type ImageReference, imageError, isImageId, nameOf } from "../../../shared/util/image.ts";
import { freeSpace, layerUse } from "../filesystem/disk.ts";
import { removeTree } from "../filesystem/tree.ts";
import type { Host } from "../host/host.ts";
import { addressesOf, isPublic } from "../network/addresses.ts";
import { hostAddresses, nftRules, refusingRoutes, slirp } from "../network/network.ts";
import { isOutOfDisk, type RunResult, runBulk } from "../process/run.ts";

const watchMs = 500;

type Pulling = Pick<Config, "storageDir" | "imagePullTimeoutMs" | "imagesBytesMax" | "diskFloorBytes" | "privateRegistries">;

export class ImagePull {
  readonly #config: Pulling;
  readonly #host: Host;
  /** Where Podman keeps downloads until they are unpacked. */
  readonly #dir: string;
  readonly #prefix: string;

  constructor(config: Pulling, host: Host, workerId: string) {
    this.#config = config;
    this.#host = host;
    this.#dir = join(config.storageDir, "tmp");
    this.#prefix = `pull-${workerId}-`;
  }

  /** Removes what pulls of an earlier process left. */
  async removeAbandoned(): Promise<void> {
    const names = await readdir(this.#dir).catch(() => []);
    for (const name of names.filter((each) => each.startsWith(this.#prefix))) await removeTree(join(this.#dir, name));
  }

  /**
   * Pulls an image and returns its id.
   *
   * @throws {SandgateError} `unprocessable` when the registry is not allowed or not reachable, or has no such image;
   *   `insufficient_storage` when the image takes more room than there is for images.
   */
  async pull(reference: ImageReference): Promise<string> {
    const isTrusted = this.#config.privateRegistries.includes(reference.registry);
    if (!isTrusted) await refusePrivate(reference);
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    const dir = await mkdtemp(join(this.#dir, this.#prefix));
    try {
      return await whileThereIsRoom(this.#config, dir, async (signal) => {
        const [program = "", ...args] = isTrusted ? pullCommand(reference, dir) : await this.#closedOff(reference, dir);
        const result = await runBulk(program, args, { timeoutMs: this.#config.imagePullTimeoutMs, signal });
        signal.throwIfAborted();
        return idOf(result, reference);
      });
    } finally {
      await removeTree(dir);
    }
  }

  /** The command that runs Podman in a closed network. */
  async #closedOff(reference: ImageReference, dir: string): Promise<string[]> {
    const routes = await routesToProxies();
    const isFiltered = this.#host.networkFilter === "nft";
    // Without a filter, all of the host's loopback would be open, not only the port of the proxy.
    const loopback = isFiltered && routes.some(({ address }) => address === slirp.host) ? [] : ["--disable-host-loopback"];
    const rules = isFiltered
      ? nftRules(
          hostAddresses(),
          "new",
          routes.map(({ address, port }) => `ip daddr ${address} tcp dport ${port} accept`),
        )
      : refusingRoutes(hostAddresses()) + routes.map(({ address }) => `route replace ${address}/32 via ${slirp.host}\n`).join("");
    await writeFile(join(dir, "rules"), rules);
    await writeFile(join(dir, "resolv.conf"), `nameserver ${slirp.resolver}\n`);
    const close = isFiltered ? "nft -f" : "ip -batch";
    return ["sh", "-c", closedScript, "sh", dir, close, loopback.join(" "), ...pullCommand(reference, dir, routes)];
  }
}

/**
 * Everything the script starts ends with it. It waits for the namespace, because slirp4netns would otherwise find the host's.
 * `wired` passes on slirp4netns' report that the network is up, or stays empty when that failed.
 */
const closedScript = `set -eu
dir=$1 close=$2 loopback=$3 && shift 3
mkfifo "$dir/wired"
setpriv --pdeathsig KILL -- unshare --net --mount -- sh -c '
  set -eu
  dir=$1 close=$2 && shift 2
  up=$(head -c 1 "$dir/wired")
  [ "$up" = 1 ] || { cat "$dir/slirp.log" >&2; echo "no network could be made for the pull" >&2; exit 1; }
  $close "$dir/rules"
  [ ! -e /etc/resolv.conf ] || mount --bind "$dir/resolv.conf" /etc/resolv.conf
  exec "$@"
' sh "$dir" "$close" "$@" &
child=$!
own=$(readlink /proc/$$/ns/net)
while at=$(readlink /proc/$child/ns/net 2>/dev/null) && [ -n "$at" ] && [ "$at" = "$own" ]; do sleep 0.01; done
setpriv --pdeathsig KILL -- slirp4netns --configure --mtu=65520 --ready-fd=3 $loopback "$child" tap0 3>"$dir/wired" >"$dir/slirp.log" 2>&1 &
slirp=$!
code=0
wait "$child" || code=$?
kill "$slirp" 2>/dev/null || :
exit "$code"`;

/** @param routes the proxies, if they differ from those of the environment. */
function pullCommand(reference: ImageReference, dir: string, routes: readonly ProxyRoute[] = []): string[] {
  const given = routes.map(({ name, url }) => `${name}=${url}`);
  return ["env", `TMPDIR=${dir}`, ...given, "podman", "pull", "--quiet", `docker://${nameOf(reference)}`];
}

/** @throws {SandgateError} for a registry that is not on the internet, or whose name has no address. */
async function refusePrivate({ registry }: ImageReference): Promise<void> {
  const addresses = await addressesOf(hostOf(registry));
  if (!addresses.every(isPublic)) {
    throw imageError(
      "registry_not_allowed",
      `image not allowed: the registry ${registry} is not on the internet, and the operator has not named it in SANDGATE_PRIVATE_REGISTRIES`,
    );
  }
  // A proxy may know names that this host does not.
  if (addresses.length === 0 && proxies().size === 0)
    throw imageError("registry_unreachable", `image not pullable: nobody knows the address of the registry ${registry}`);
}

/** A proxy as it is reached from the closed network. */
interface ProxyRoute {
  readonly name: string;
  readonly url: string;
  readonly address: string;
  readonly port: number;
}

async function routesToProxies(): Promise<ProxyRoute[]> {
  const routes: ProxyRoute[] = [];
  for (const [name, given] of proxies()) {
    const url = new URL(given);
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    const addresses = await addressesOf(host);
    const isLoopback = addresses.some((address) => address.startsWith("127.") || address === "::1");
    // The names of this host's own proxy lead nowhere from there.
    if (isLoopback) url.hostname = slirp.host;
    const ways = isLoopback ? [slirp.host] : addresses.filter((address) => isIP(address) === 4);
    routes.push(...ways.map((address) => ({ name, url: url.href.replace(/\/$/, ""), address, port })));
  }
  return routes;
}

/** Pulls into a folder, and aborts that before it takes more than its share of the disk. @param work gets the signal that aborts it */
async function whileThereIsRoom<T>(config: Pulling, dir: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const full = new AbortController();
  const abort = (message: string): void => full.abort(new SandgateError("insufficient_storage", message));
  // Leaves twice the floor to sandboxes that write, because those are ended at the floor itself.
  const look = async (): Promise<void> => {
    const isShort = (await freeSpace(config.storageDir)).bytes < 2 * config.diskFloorBytes;
    if (isShort) abort("the host has too little free disk space for another image");
    if (((await layerUse(dir))?.bytes ?? 0) > config.imagesBytesMax) abort(tooLarge(config));
  };
  const timer = setInterval(() => void look().catch(() => undefined), watchMs);
  try {
    await look();
    full.signal.throwIfAborted();
    return await work(full.signal);
  } catch (error) {
    throw full.signal.aborted ? full.signal.reason : error;
  } finally {
    clearInterval(timer);
  }
}

/** The message for an image that does not fit. */
export const tooLarge = ({ imagesBytesMax }: Pick<Config, "imagesBytesMax">): string =>
  `the image takes more than the ${Math.round(imagesBytesMax / 2 ** 20)} MiB that there are for images`;

function idOf(result: RunResult, reference: ImageReference): string {
  const id = result.stdout.trim().split("\n").at(-1) ?? "";
  if (result.exitCode === 0 && isImageId(id)) return id;
  throw pullFailure(result, reference);
}

/** Translates Podman's errors. Its own messages may quote an untrusted server, so they stay in the log. */
export function pullFailure({ stderr, timedOut }: Pick<RunResult, "stderr" | "timedOut">, reference: ImageReference): SandgateError {
  const name = nameOf(reference);
  const { registry, path } = reference;
  const cause = new Error(stderr.slice(-2_000));
  // The image's own name says nothing about what went wrong.
  const words = stderr.replaceAll(name, "").replaceAll(path, "");
  if (timedOut) return imageError("registry_unreachable", `image not pullable: the registry ${registry} took too long to send ${name}`, cause);
  if (isOutOfDisk(words)) return new SandgateError("insufficient_storage", "the host is out of disk space", { cause });
  if (isUnreachable.test(words))
    return imageError("registry_unreachable", `image not pullable: the registry ${registry} cannot be reached or does not answer as one`, cause);
  if (isMissing.test(words)) return imageError("image_not_found", `image not found: the registry ${registry} has no ${name} that anybody may pull`, cause);
  return imageError("image_not_found", `image not pullable: what the registry ${registry} has as ${name} is no image for this machine`, cause);
}

const isUnreachable =
  /dial tcp|lookup |refused|unreachable|timeout|timed out|x509|tls:|certificate|EOF|reset by peer|pinging container registry|proxyconnect|no network could be made|\b(429|50[0-9])\b|toomanyrequests|unsupported protocol/i;
const isMissing = /manifest unknown|name unknown|repository name not known|not found|\b40[134]\b|denied|unauthorized|authentication required/i;
