/** Running things as one of the service accounts, with nothing of the caller's environment but what is listed here. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Account, type Instance, type PartName, sessionBusOf } from "./instance.ts";
import { CommandError, run } from "./run.ts";
import { searchPath } from "./search-path.mjs";

type Environment = Record<string, string>;

/** What a part may take over from the environment of `npm start`: time zone, proxies and certificates. */
const inherited = /^(TZ|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(HTTPS?|NO|ALL)_PROXY)$/i;

/**
 * In a session of its own a command has no terminal, so that it cannot type into that of root. One that leads its session
 * already stays as it is, because setpriv and the like must keep the process id that its parent knows.
 */
const inOwnSession = ["sh", "-c", 'read -r _ _ _ _ _ session _ < /proc/self/stat; [ "$session" = $$ ] || exec setsid -- "$@"; exec "$@"', "sh"];

/**
 * The command that runs `argv` as `account`: unchanged when that is who we are, else without a terminal and without any of
 * root's rights but `keep`. Its input and output must be no terminal either.
 */
export function asAccount(account: Pick<Account, "uid" | "gid">, argv: readonly string[], keep: readonly string[] = []): string[] {
  if (process.getuid?.() === account.uid) return [...argv];
  const rights = ["-all", ...keep.map((capability) => `+${capability}`)].join(",");
  const identity = ["--reuid", String(account.uid), "--regid", String(account.gid), "--init-groups"];
  return [...inOwnSession, "setpriv", ...identity, `--inh-caps=${rights}`, `--ambient-caps=${rights}`, "--", ...argv];
}

/** The environment of everything that runs as the worker's account. */
export function accountEnvironment(instance: Instance): Environment {
  const { account, paths } = instance;
  const bus = sessionBusOf(account);
  return {
    ...commonEnvironment(account, instance.home),
    XDG_RUNTIME_DIR: instance.runtimeDir,
    ...(existsSync(bus) ? { DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` } : {}),
    NODE_COMPILE_CACHE: join(instance.runtimeDir, "compiled"),
    CONTAINERS_STORAGE_CONF: paths.storageConf,
    CONTAINERS_CONF: paths.containersConf,
    // What a host cannot do is in the host table; a warning with every command would hide real ones.
    PODMAN_IGNORE_CGROUPSV1_WARNING: "1",
  };
}

/** The environment of a part that has nothing to do with Podman. */
export function partEnvironment({ accounts, paths }: Instance, part: Exclude<PartName, "worker">): Environment {
  return { ...commonEnvironment(accounts[part], paths[part]), NODE_COMPILE_CACHE: join(paths[part], "compiled") };
}

/** Node.js keeps in NODE_COMPILE_CACHE what it has made of the sources, so that a part starts sooner from the second start on. */
function commonEnvironment({ name }: Account, home: string): Environment {
  return { ...proxyEnvironment(), HOME: home, USER: name, LOGNAME: name, PATH: searchPath, LANG: "C.UTF-8" };
}

/** Proxies, certificates and time zone of the caller. */
export function proxyEnvironment(): Environment {
  return pick((name) => inherited.test(name));
}

/** The settings as the caller gave them; the secrets among them are not in the environment any more (`forgetSecrets`). */
export function givenSettings(): Environment {
  return pick((name) => name.startsWith("SANDGATE_"));
}

function pick(wanted: (name: string) => boolean): Environment {
  const pairs = Object.entries(process.env).filter((pair): pair is [string, string] => pair[1] !== undefined && wanted(pair[0]));
  return Object.fromEntries(pairs);
}

/** The command that runs `argv` in Podman's namespace of the account. */
export function inPodmanNamespace({ account, paths }: Instance, argv: readonly string[]): string[] {
  return asAccount(account, [join(paths.app, "systemd/base/run-as-worker"), ...argv]);
}

const readTimeoutMs = 10_000;

/**
 * The beginning of a file that the account may have replaced by anything, read with no more rights than it has; empty when
 * there is none. What it says is worth as much as the account's word.
 */
export async function readAsAccount(account: Pick<Account, "uid" | "gid">, file: string, bytesMax: number): Promise<string> {
  // Opening a FIFO would wait for its other end.
  const read = ["dd", `if=${file}`, `bs=${bytesMax}`, "count=1", "iflag=nonblock", "status=none"];
  return run(asAccount(account, read), { cwd: "/", timeoutMs: readTimeoutMs }).catch((error: unknown) => {
    if (!(error instanceof CommandError)) throw error;
    return "";
  });
}
