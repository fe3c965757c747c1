/** What one account's command takes while another account's sandbox floods everything it can, all at once or one after the other. */
import type { Installation, Sandbox } from "../installation.ts";
import { type Contender, timed, timing } from "../measure.ts";
import { compare, own, type Row, rowOf } from "../rows.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const hostileTask = "execute true beside a hostile sandbox";
/** The same commands a moment before, with nothing else running. */
export const quietContender = "before the floods";
/** What the kernel alone takes: a program in the tenant's sandbox starts another, with no part of Sandgate on the way. */
const bareContender = "fork and exec inside";

/** A Python loop that starts over whatever ends it. */
const loop = (body: string): string =>
  `import ctypes, os, time\nlibc = ctypes.CDLL(None)\nwhile True:\n  if os.fork() == 0:\n${body
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n")}\n    os._exit(0)\n  os.wait()`;

const floods: Readonly<Record<string, string>> = {
  memory: loop('kept = []\nwhile True: kept.append(b"x" * (16 << 20))'),
  processes: loop("for _ in range(200):\n  if os.fork() == 0: os._exit(0)"),
  disk: loop('with open("/srv/flood", "wb") as file:\n  for _ in range(64): file.write(b"x" * (4 << 20))'),
  inodes: loop(
    'os.makedirs("/srv/many", exist_ok=True)\nfor i in range(20000): open("/srv/many/%d" % i, "w").close()\nfor name in os.listdir("/srv/many"): os.unlink("/srv/many/" + name)',
  ),
  ipc: loop("for _ in range(4096):\n  libc.shmget(0, 4096, 0o1600)\n  libc.msgget(0, 0o1600)\n  libc.semget(0, 100, 0o1600)"),
  keys: loop('for i in range(4096): libc.syscall(248, b"user", b"flood%d" % i, b"x" * 512, 512, -2)'),
  inotify: loop("for _ in range(4096): libc.inotify_init()"),
};

const output = "output";
const kinds: readonly string[] = [...Object.keys(floods), output];

const inBackground = ([name, program]: readonly [string, string]): string =>
  `cat > /tmp/${name}.py <<'END'\n${program}\nEND\npython3 /tmp/${name}.py > /dev/null 2>&1 &`;

/** The slowest hundredth of a hundred calls would be a single one. */
const countMin = 200;
const countMax = 800;
/** Of the time, for the kernel alone: in quiet, and again beside the floods. */
const bareShare = 0.15;
/** By then the code of all parts is compiled, so that what comes first is not the slower for it. */
const warmUp = 300;

export async function hostile(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (tenant) => {
    const measure = async (name: string, bareName: string, what: string): Promise<Row[]> => [
      ...(await compare(hostileTask, [command(setting, tenant, name)], roundsOf(setting, what, { share: 0.5 - bareShare, warmUp, countMin, countMax }))),
      await bare(setting, tenant, bareName),
    ];
    const quiet = await measure(quietContender, `${bareContender}, ${quietContender}`, "quiet");
    return [...(await besideFloods(installation, kinds, () => measure(own, bareContender, "beside floods"))), ...quiet];
  });
}

/** Each flood alone, to see which one it is that hurts. */
export async function floodsAlone(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (tenant) => {
    const rounds = { share: 1 / (kinds.length + 1), warmUp, countMin, countMax };
    const measure = (task: string): Promise<Row[]> => compare(task, [command(setting, tenant, own)], roundsOf(setting, task, rounds));
    const rows = await measure("execute true beside nothing");
    for (const kind of kinds) rows.push(...(await besideFloods(installation, [kind], () => measure(`execute true beside a flood of ${kind}`))));
    return rows;
  });
}

/** Starts a program again and again for so long, with pauses like those of a client, and prints the milliseconds of each. */
const starts = (seconds: number): string => `python3 - <<'END'
import os, time
end = time.monotonic() + ${seconds}
while time.monotonic() < end:
  time.sleep(0.005)
  begun = time.perf_counter()
  os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
  print((time.perf_counter() - begun) * 1000)
END`;

async function bare({ installation, budgetMs }: Setting, { id }: Sandbox, name: string): Promise<Row> {
  const printed = await installation.execute(id, starts((budgetMs * bareShare) / 1_000));
  return rowOf(hostileTask, name, printed.trim().split("\n").map(Number));
}

const command = ({ installation }: Setting, { id }: Sandbox, name: string): Contender<"ms"> =>
  timing(name, () => timed(() => installation.execute(id, "true")));

function besideFloods<T>(installation: Installation, which: readonly string[], measure: () => Promise<T>): Promise<T> {
  return installation.withSandbox(async ({ id }) => {
    // The floods go on after the command has ended, until the sandbox is deleted.
    const background = Object.entries(floods).filter(([kind]) => which.includes(kind));
    if (background.length > 0) await installation.execute(id, background.map(inBackground).join("\n"));
    // Its output beyond what an answer may hold is read and dropped. Deleting the sandbox ends it.
    if (which.includes(output)) void installation.execute(id, "yes").catch(() => undefined);
    return measure();
  });
}
