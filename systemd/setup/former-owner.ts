/** Converts installations of earlier versions, in which one account ran all parts: the gateway and NATS get their files. */
import { lchown, lstat, rmdir } from "node:fs/promises";
import { asAccount } from "../base/as-account.ts";
import { StartFailure } from "../base/failure.ts";
import type { Account, Instance } from "../base/instance.ts";
import { run } from "../base/run.ts";
import { runningParts } from "../supervisor/leftovers.ts";
import type { Step } from "./step.ts";

/** Changes the owner of the folders that earlier versions made for the worker's account, while no part runs. */
export function formerOwner(instance: Instance): Step {
  const { accounts, paths } = instance;
  const isGatewayToDo = () => isForeign(paths.gateway, accounts.gateway);
  const isNatsToDo = () => isForeign(paths.nats, accounts.nats);
  return {
    title: "Giving the gateway and NATS their own users",
    lacks: async () => {
      if (process.getuid?.() !== 0) return undefined;
      return (await isGatewayToDo()) ? paths.gateway : (await isNatsToDo()) ? paths.nats : undefined;
    },
    provide: async () => {
      await refuseWhileRunning(instance);
      if (await isGatewayToDo()) await discard(paths.gateway, accounts.worker);
      if (await isNatsToDo()) await handOver(paths.nats, accounts.worker, accounts.nats);
    },
  };
}

async function isForeign(path: string, account: Account): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.uid !== account.uid;
}

async function refuseWhileRunning({ paths }: Instance): Promise<void> {
  const running = await runningParts(paths.supervisor);
  if (running.length === 0) return;
  throw new StartFailure(`Stop the Sandgate that runs on ${paths.data} first: the files of ${running.join(", ")} get other owners`);
}

/** Removes a folder whose contents are not kept. Runs as its former owner, who may have left anything in there. */
async function discard(path: string, former: Account): Promise<void> {
  await run(asAccount(former, ["find", path, "-mindepth", "1", "-delete"]), { cwd: "/" });
  await rmdir(path);
}

/**
 * Changes the owner of a folder and of what the former owner has in it; links cannot make it give away other files. Root
 * owns the folder in the meantime, so that the former owner cannot enter it and an interrupted run is detected.
 */
async function handOver(path: string, former: Account, account: Account): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory() || ![former.uid, 0].includes(found.uid)) {
    throw new StartFailure(`${path} belongs to user ${found.uid}, not to ${account.name}: start as before, or set SANDGATE_DATA_DIR`);
  }
  await lchown(path, 0, 0);
  const owner = `${account.uid}:${account.gid}`;
  await run(["chown", "--recursive", "--no-dereference", "-P", `--from=${former.uid}`, owner, path]);
  await lchown(path, account.uid, account.gid);
}
