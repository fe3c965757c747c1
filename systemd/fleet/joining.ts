/** What `systemd/install --role` and `--join` choose for a machine: settings, and the files that these name. */
import { join } from "node:path";
import { fileVariable, loadConfig, settings } from "../../shared/config.ts";
import { StartFailure } from "../base/failure.ts";
import { pathsOf } from "../base/instance.ts";
import { type Node, nodeText } from "../cluster/identity.ts";
import { settingsDir } from "../units/places.ts";
import { decodeToken, type Token } from "./token.ts";

/** What was chosen for a machine; nothing, when it is to be as it is. */
export interface Choice {
  /** By the names of their variables. */
  readonly settings: Readonly<Record<string, string>>;
  readonly files: readonly { readonly path: string; readonly text: string; readonly mode: number }[];
  /** Where the machine is to have a NATS server beside others. */
  readonly node?: Pick<Node, "id" | "servers">;
}

/** @throws {StartFailure} if the options cannot be meant */
export function choiceOf({ role, join: joining }: { readonly role?: string | undefined; readonly join?: string | undefined }): Choice {
  if (role !== undefined && settings.role.parse(role) === undefined) throw new StartFailure(`--role must be one of ${settings.role.takes}`);
  if (joining === undefined) return { settings: role ? { [settings.role.name]: role } : {}, files: [] };
  const token = decodeToken(joining);
  if (role !== undefined && role !== token.role) throw new StartFailure(`This token is for a ${token.role}, not for --role ${role}; make another one.`);
  return choiceFor(token);
}

const file = (name: string): string => join(settingsDir, name);

/** @throws {StartFailure} if the token lacks something */
function choiceFor(token: Token): Choice {
  if (token.role === "nats" || token.role === "all") return nodeChoice(token);
  return partChoice(token);
}

/** A machine with a NATS server of its own, beside others. */
function nodeChoice({ role, id, url, certificate, seeds, authorityKey = "", apiKey, memoryKey }: Token): Choice {
  const node: Node = { id, authority: { certificate, key: authorityKey }, seeds, servers: url.split(",") };
  return {
    settings: { [settings.role.name]: role, ...(apiKey ? { [fileVariable(settings.bootstrapApiKey.name)]: file("api-key") } : {}) },
    files: [
      { path: pathsOf(loadConfig({})).natsCluster, text: nodeText(node), mode: 0o600 },
      ...(apiKey ? [{ path: file("api-key"), text: `${apiKey}\n`, mode: 0o600 }] : []),
      ...memoryKeyFile(memoryKey),
    ],
    node: { id, servers: node.servers },
  };
}

function partChoice({ role, id, url, certificate, seeds, apiKey, memoryKey }: Token): Choice {
  const [ca, nkey, key] = [file("nats.crt"), file("nats.nkey"), file("api-key")];
  return {
    settings: {
      [settings.role.name]: role,
      [settings.natsUrl.name]: url,
      [settings.natsCa.name]: ca,
      [fileVariable(settings.natsNkey.name)]: nkey,
      ...(role === "worker" ? { [settings.workerId.name]: id } : {}),
      ...(apiKey ? { [fileVariable(settings.bootstrapApiKey.name)]: key } : {}),
    },
    files: [
      // Not secret: the parts read it themselves.
      { path: ca, text: certificate, mode: 0o644 },
      { path: nkey, text: `${seeds.join("\n")}\n`, mode: 0o600 },
      ...(apiKey ? [{ path: key, text: `${apiKey}\n`, mode: 0o600 }] : []),
      ...memoryKeyFile(memoryKey),
    ],
  };
}

/** For the helper alone: in no setting, so that no part is given it. */
const memoryKeyFile = (key: string | undefined): Choice["files"] =>
  key === undefined ? [] : [{ path: pathsOf(loadConfig({})).memoryKey, text: `${key}\n`, mode: 0o600 }];

/**
 * Refuses to make something else of a machine that is set up: its sandboxes would be left without a worker.
 *
 * @param present its settings, if it is set up
 * @throws {StartFailure} naming the first setting that differs
 */
export function refuseOtherChoice(choice: Choice, present: NodeJS.ProcessEnv): void {
  for (const [name, value] of Object.entries(choice.settings)) {
    const found = present[name] ?? (name === settings.role.name ? settings.role.fallback : undefined);
    if (found === value) continue;
    throw new StartFailure(
      `This machine is set up with ${present[name] ? `${name}=${present[name]}` : `no ${name}`}. To make something else of it, remove it first: sudo systemd/install --remove --purge`,
    );
  }
}

/** @throws {StartFailure} if a machine is to run one part alone and nobody has said where the NATS server is */
export function refuseAlone(wanted: NodeJS.ProcessEnv): void {
  const role = wanted[settings.role.name];
  if ((role !== "worker" && role !== "gateway") || wanted[settings.natsUrl.name]) return;
  throw new StartFailure(`A machine that runs only a ${role} has to join another: sudo sandgate-admin join-token --role ${role} there prints the command.`);
}
