/** What one account's command takes while another account's sandbox floods everything it can, all at once or one after the other. */
import type { Installation, Sandbox } from "../installation.ts";
import { type Contender, takeTurns, timed, timing } from "../measure.ts";
import { compare, own, type Row, rowsOf, type Timings } from "../rows.ts";
import { timesAsLong } from "../statistics.ts";
import { roundsOf, type Setting } from "./setting.ts";

export const hostileTask = "execute true beside a hostile sandbox";
/** The same commands in turn with those, with nothing else running. */
export const quietContender = "without the floods";
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
/**
 * Quiet and floods take turns so often, because the machine has better and worse moments as well, and how much turns differ from
 * each other says how sure their ratio is.
 */
const turns = 6;
/** Of the time, for the kernel alone: in quiet, and again beside the floods. */
const bareShare = 0.15;
/** By then the code of all parts is compiled, so that what comes first is not the slower for it. */
const warmUp = 300;
/** By then the floods of a turn have all begun, or what those before have left is written and freed. */
const turnWarmUp = 100;

/** Milliseconds of one turn, or of several. */
interface Turn {
  readonly commands: readonly number[];
  readonly bare: readonly number[];
}

export async function hostile(setting: Setting): Promise<Row[]> {
  const { installation } = setting;
  return installation.withSandbox(async (tenant) => {
    const quiet: Turn[] = [];
    const flooded: Turn[] = [];
    for (let turn = 0; turn < turns; turn++) {
      quiet.push(await takeTurn(setting, tenant, `quiet, turn ${turn + 1} of ${turns}`, turn === 0 ? warmUp : turnWarmUp));
      flooded.push(await besideFloods(installation, kinds, () => takeTurn(setting, tenant, `beside floods, turn ${turn + 1} of ${turns}`, turnWarmUp)));
    }
    return rowsOfTurns(quiet, flooded);
  });
}

async function takeTurn(setting: Setting, tenant: Sandbox, what: string, warmUps: number): Promise<Turn> {
  const part = { share: (0.5 - bareShare) / turns, warmUp: warmUps, countMin: Math.ceil(countMin / turns), countMax: Math.ceil(countMax / turns) };
  const { inARow } = await takeTurns([command(setting, tenant, own)], roundsOf(setting, what, part), () => false);
  return { commands: inARow[own]?.ms.flat() ?? [], bare: await bare(setting, tenant) };
}

export function rowsOfTurns(quiet: readonly Turn[], flooded: readonly Turn[]): Row[] {
  const timings = (contender: string, taken: readonly Turn[], metric: keyof Turn): Timings => ({ contender, rounds: taken.map((turn) => turn[metric]) });
  const [ours, bareBeside, before, bareBefore] = rowsOf(hostileTask, [
    timings(own, flooded, "commands"),
    timings(bareContender, flooded, "bare"),
    timings(quietContender, quiet, "commands"),
    timings(`${bareContender}, ${quietContender}`, quiet, "bare"),
  ]) as [Row, Row, Row, Row];
  const times = timesAsLong(
    flooded.map(({ commands }) => commands),
    quiet.map(({ commands }) => commands),
    0.99,
  );
  return [ours, bareBeside, { ...before, slowest: times ?? "too few rounds" }, bareBefore];
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

async function bare({ installation, budgetMs }: Setting, { id }: Sandbox): Promise<number[]> {
  const printed = await installation.execute(id, starts((budgetMs * bareShare) / turns / 1_000));
  return printed.trim().split("\n").map(Number);
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
