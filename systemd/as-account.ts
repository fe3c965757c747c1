/** Running things as the service account, with nothing of the caller's environment but what is listed here. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { clientVariables } from "../shared/config.ts";
import { type Account, type Instance, sessionBusOf } from "./instance.ts";
import { searchPath } from "./search-path.ts";

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

/** The environment of everything that runs as the account. */
export function accountEnvironment(instance: Instance): Environment {
  const { account, paths } = instance;
  const bus = sessionBusOf(account);
  return {
    ...proxyEnvironment(),
    HOME: instance.home,
    USER: account.name,
    LOGNAME: account.name,
    PATH: searchPath,
    LANG: "C.UTF-8",
    XDG_RUNTIME_DIR: instance.runtimeDir,
    ...(existsSync(bus) ? { DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` } : {}),
    // Node.js keeps there what it has made of the sources, so that the parts start sooner from the second start on.
    NODE_COMPILE_CACHE: join(instance.runtimeDir, "compiled"),
    CONTAINERS_STORAGE_CONF: paths.storageConf,
    CONTAINERS_CONF: paths.containersConf,
    // What a host cannot do is in the host table; a warning with every command would hide real ones.
    PODMAN_IGNORE_CGROUPSV1_WARNING: "1",
  };
}

/** Proxies, certificates and time zone of the caller. */
export function proxyEnvironment(): Environment {
  return pick((name) => inherited.test(name));
}

/** The settings as the caller gave them. */
export function givenSettings(): Environment {
  return pick((name) => name.startsWith("SANDGATE_") && !clientVariables.has(name));
}

function pick(wanted: (name: string) => boolean): Environment {
  const pairs = Object.entries(process.env).filter((pair): pair is [string, string] => pair[1] !== undefined && wanted(pair[0]));
  return Object.fromEntries(pairs);
}

/** The command that runs `argv` in Podman's namespace of the account. */
export function inPodmanNamespace({ account, paths }: Instance, argv: readonly string[]): string[] {
  return asAccount(account, [join(paths.app, "systemd/run-as-worker"), ...argv]);
}
