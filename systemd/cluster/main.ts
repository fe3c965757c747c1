/**
 * `sandgate-cluster.service`: runs beside each NATS server of an installation with several. It puts this machine into the list of
 * all machines, configures its server by that list, at the start and after each change, and sees to it that everything that is
 * stored has enough copies.
 */
import type { BucketMirror } from "../../shared/bus/mirror.ts";
import { ConfigError, loadConfig } from "../../shared/config.ts";
import { every, inBackground, watchUncaught } from "../../shared/util/background.ts";
import { createLogger, type Logger } from "../../shared/util/log.ts";
import { pause } from "../../shared/waiting.ts";
import { messageOf, StartFailure } from "../base/failure.ts";
import { type Instance, instanceOf } from "../base/instance.ts";
import { searchPath } from "../base/search-path.mjs";
import { isNats, type Member, readMembers } from "../fleet/members.ts";
import { findAccounts } from "../setup/account.ts";
import { settingsOf } from "../units/places.ts";
import { apply } from "./apply.ts";
import { keepCopies, openStorageBus } from "./copies.ts";
import { type Node, readNode } from "./identity.ts";
import { openMemberList } from "./member-list.ts";
import { placeOf } from "./place.ts";
import { membersHere } from "./registration.ts";

const copiesMs = 10_000;
/** Changes that come together are taken together. */
const gatherMs = 200;
const againMs = 5_000;

/** Applies one state of the list after the other, always the latest. */
class Follower {
  readonly #instance: Instance;
  readonly #members: BucketMirror<Member>;
  readonly #log: Logger;
  #isAsked = false;
  #isBusy = false;

  constructor(instance: Instance, members: BucketMirror<Member>, log: Logger) {
    this.#instance = instance;
    this.#members = members;
    this.#log = log;
  }

  ask(): void {
    this.#isAsked = true;
    if (!this.#isBusy) inBackground(this.#log, "the list of machines could not be followed", () => this.#follow());
  }

  async #follow(): Promise<void> {
    this.#isBusy = true;
    try {
      while (this.#isAsked) {
        await pause(gatherMs);
        this.#isAsked = false;
        await this.#apply();
      }
    } finally {
      this.#isBusy = false;
    }
  }

  async #apply(): Promise<void> {
    const list = [...this.#members.values()];
    try {
      await apply(this.#instance, list);
      this.#log.info({ event: "members_applied", members: list.length }, "the NATS server has the list of machines");
    } catch (err) {
      this.#log.error({ err }, "the list of machines could not be applied; trying again");
      await pause(againMs);
      this.#isAsked = true;
    }
  }
}

async function main(log: Logger): Promise<void> {
  const config = loadConfig(await settingsOf());
  const instance = instanceOf(config, await findAccounts(config), "systemd");
  const node = await readNode(instance);
  if (!node) throw new StartFailure("this machine is no node of a cluster");
  const servers = await serversOf(instance);
  const { members, bus } = await openMemberList(instance, node, servers, log);
  refuseRemoved(node, members);
  await finishForming(members, await readMembers(instance.paths));
  for (const own of await membersHere(instance, node)) await put(members, own);
  const follower = new Follower(instance, members, log);
  members.onChange(() => follower.ask());
  follower.ask();
  const storage = await openStorageBus(instance, node, servers, log);
  every(copiesMs, log, "the number of copies could not be seen to", () => keepCopies(instance, [...members.values()], [bus, storage], log));
}

/** As far as is known here. */
async function serversOf(instance: Instance): Promise<readonly string[]> {
  const place = await placeOf(instance, await readMembers(instance.paths));
  return place?.servers ?? [];
}

/** Nobody comes back who was removed. @throws {StartFailure} */
function refuseRemoved({ id }: Node, members: BucketMirror<Member>): void {
  if (!members.get(id)) throw new StartFailure(`${id} was removed from this installation; to use the machine again: systemd/install --remove --purge`);
}

/** Tells the others that they are nodes of the cluster now, if the command that made it was interrupted after it had been made. */
async function finishForming(members: BucketMirror<Member>, known: readonly Member[]): Promise<void> {
  for (const { id } of known.filter((member) => isNats(member) && member.state === "active"))
    await members.change(id, (member) => (isNats(member) ? { ...member, state: "active" } : member));
}

/** What others have decided about a member stays. */
async function put(members: BucketMirror<Member>, own: Member): Promise<void> {
  const known = members.get(own.id);
  const wanted = known?.role === "nats" && own.role === "nats" ? { ...own, state: known.state } : own;
  if (JSON.stringify(known) !== JSON.stringify(wanted)) await members.put(own.id, wanted);
}

process.env.PATH = searchPath;
const log = createLogger("cluster", "info");
watchUncaught(log, (code) => process.exit(code));
main(log).catch((error: unknown) => {
  log.fatal(error instanceof StartFailure || error instanceof ConfigError ? { event: "config" } : { err: error }, messageOf(error));
  process.exit(1);
});
