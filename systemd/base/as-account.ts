/** Runs commands as one of the service accounts. Only the environment variables listed here are passed on. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isSetting } from "../../shared/config.ts";
import { accountEntrance } from "../../shared/util/control-groups.ts";
import { type Account, type Instance, type PartName, sessionBusOf } from "./instance.ts";
import { CommandError, run } from "./run.ts";
import { searchPath } from "./search-path.mjs";

type Environment = Record<string, string>;

/** What a part may inherit from the environment of `npm start`: time zone, proxies and certificates. */
const inherited = /^(TZ|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|(HTTPS?|NO|ALL)_PROXY)$/i;

/**
 * Runs a command in a session without a terminal, so that it cannot type into root's. A session leader is left as it is,
 * because setpriv and the like must keep the process id that their parent knows.
 */
const inOwnSession = ["sh", "-c", 'read -r _ _ _ _ _ session _ < /proc/self/stat; [ "$session" = $$ ] || exec setsid -- "$@"; exec "$@"', "sh"];

/**
 * The command that runs `argv` as `account`. Unchanged if this process already runs as that account; otherwise without a
 * terminal and with no capabilities except `keep`. The caller must not pass a terminal as its input or output either.
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
    // The host table says what a host cannot do; repeating it as a warning with every command would hide real warnings.
    PODMAN_IGNORE_CGROUPSV1_WARNING: "1",
  };
}

/** The environment of a part that has nothing to do with Podman. */
export function partEnvironment({ accounts, paths }: Instance, part: Exclude<PartName, "worker">): Environment {
  return { ...commonEnvironment(accounts[part], paths[part]), NODE_COMPILE_CACHE: join(paths[part], "compiled") };
}

/**
 * The settings of glibc's allocator. By default each thread of Node.js fills an arena of its own, and what is freed in them
 * stays with the process.
 */
const allocator = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: String(128 * 1024) };

/** Node.js keeps compiled code in NODE_COMPILE_CACHE, which makes every start after the first one faster. */
function commonEnvironment({ name }: Account, home: string): Environment {
  return { ...proxyEnvironment(), ...allocator, HOME: home, USER: name, LOGNAME: name, PATH: searchPath, LANG: "C.UTF-8" };
}

/** Proxies, certificates and time zone of the caller. */
export function proxyEnvironment(): Environment {
  return pick((name) => inherited.test(name));
}

/** The settings as the caller gave them, without secrets: `forgetSecrets` has removed those from the environment. */
export function givenSettings(): Environment {
  return pick(isSetting);
}

function pick(wanted: (name: string) => boolean): Environment {
  const pairs = Object.entries(process.env).filter((pair): pair is [string, string] => pair[1] !== undefined && wanted(pair[0]));
  return Object.fromEntries(pairs);
}

/** The command that runs `argv` in Podman's namespace of the account. */
export function inPodmanNamespace({ account, paths }: Instance, argv: readonly string[]): string[] {
  const command = asAccount(account, [join(paths.app, "systemd/base/run-as-worker"), ...argv]);
  const entrance = process.getuid?.() === account.uid ? undefined : accountEntrance(account.uid);
  return entrance ? [...enteringFirst, entrance, ...command] : command;
}

/** Enters a control group, which only root can do from outside. Without it the command runs as well, and says what it lacks. */
const enteringFirst = ["sh", "-c", 'echo 0 > "$0" || true; exec "$@"'];

const readTimeoutMs = 10_000;

/**
 * Reads the beginning of a file that the account may have replaced with anything, using only the account's rights. Empty if
 * there is no file. The content is as trustworthy as the account.
 */
export async function readAsAccount(account: Pick<Account, "uid" | "gid">, file: string, bytesMax: number): Promise<string> {
  // Opening a FIFO would wait for its other end.
  const read = ["dd", `if=${file}`, `bs=${bytesMax}`, "count=1", "iflag=nonblock", "status=none"];
  return run(asAccount(account, read), { cwd: "/", timeoutMs: readTimeoutMs }).catch((error: unknown) => {
    if (!(error instanceof CommandError)) throw error;
    return "";
  });
}
