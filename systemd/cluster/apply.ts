/** Makes this machine's NATS server what the list of machines says. */
import { existsSync } from "node:fs";
import { pause } from "../../shared/waiting.ts";
import { partEnvironment } from "../base/as-account.ts";
import { type Instance, runsHere } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import { isNats, type Member, readMembers, writeMembers } from "../fleet/members.ts";
import { setupLock } from "../supervisor/alone.ts";
import { secretsOf, workerIdOf } from "../supervisor/bus-identities.ts";
import { waitForLock } from "../supervisor/lock.ts";
import { writeConfiguration } from "../supervisor/nats.ts";
import { environmentFile, give } from "../units/given.ts";

const unit = "sandgate-nats.service";
/** The server takes a signal at any time, and says nowhere but in its log when it is done. */
const takenMs = 500;

/** Has the server read its configuration another time. */
export async function reload(): Promise<void> {
  if (!(await succeeds(["systemctl", "is-active", "--quiet", unit]))) return;
  await run(["systemctl", "reload", unit]);
  await pause(takenMs);
}

/** The workers that run on this machine. */
export const workersHere = async (instance: Instance): Promise<string[]> => (runsHere(instance.config, "worker") ? [await workerIdOf(instance)] : []);

/** Keeps the list for the next start, and has the server use it. No set-up does anything meanwhile. */
export async function apply(instance: Instance, members: readonly Member[]): Promise<void> {
  const lock = await waitForLock(setupLock(instance.paths.supervisor), new AbortController().signal);
  try {
    await applyAlone(instance, members);
  } finally {
    lock.release();
  }
}

/** The same for who has the lock already. */
export async function applyAlone(instance: Instance, members: readonly Member[]): Promise<void> {
  const { config, paths } = instance;
  const known = await readMembers(paths);
  await writeMembers(
    paths,
    members.map((member) => withoutStepBack(member, known)),
  );
  const { mode, isChanged } = await writeConfiguration(instance, await workersHere(instance), config.natsPort);
  if (mode !== "waiting" && !existsSync(environmentFile("nats"))) await startServer(instance);
  else if (isChanged) {
    await reload();
    // The server brings the storage into a new account only when it reads its configuration another time.
    await reload();
  }
}

/** A node that has become one stays one, whatever an older list says: it would take up again what it stored alone. */
function withoutStepBack(member: Member, known: readonly Member[]): Member {
  const before = known.find(({ id }) => id === member.id);
  return isNats(member) && before && isNats(before) && before.state === "active" ? { ...member, state: "active" } : member;
}

/** Starts the server for the first time. */
export async function startServer(instance: Instance): Promise<void> {
  await giveNats(instance);
  await run(["systemctl", "start", unit]);
}

/** Gives its unit what it is started with. */
export async function giveNats(instance: Instance): Promise<void> {
  const { serverKey, nodeKey } = secretsOf(instance);
  await give("nats", { ...partEnvironment(instance, "nats"), SANDGATE_NATS_CONF: instance.paths.natsConf }, [serverKey, nodeKey].filter(existsSync));
}
