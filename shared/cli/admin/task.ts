/** The context of the operator's commands: the gateway, the key, and confirmation of irreversible changes. */
import type { Command } from "commander";
import { clientEnvironment } from "../../client/client.ts";
import { APIConnectionError } from "../../client/errors.ts";
import { type ClientOptions, Sandgate } from "../../client/index.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failures.ts";
import { Output } from "../output.ts";
import { isSameGateway, readStored, urlOf } from "../settings.ts";
import { type CommonOptions, forEach, type Task, tellWait } from "../task.ts";
import { operatorSocket, ownKey, readKey } from "./installation.ts";

/** The options of every operator command. */
export interface AdminOptions extends CommonOptions {
  readonly keyFile?: string;
  readonly yes?: true;
}

export interface AdminTask extends Task {
  /** Asks before an irreversible change. @throws {CliError} if the user declines */
  confirm(question: string): Promise<void>;
}

/** Longer than the server needs to delete a sandbox. */
const timeoutMs = 90_000;

type Work<O, A extends unknown[]> = (task: AdminTask, options: O, ...operands: A) => Promise<void>;

/** The commander action of a command. */
export function doing<O extends AdminOptions, A extends unknown[]>(work: Work<O, A>): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const options = (given.at(-1) as Command).optsWithGlobals<O>();
    const access = await accessOf(options);
    const client = new Sandgate({ ...access, timeoutMs, maxRetries: 0, onRateLimited: tellWait });
    const ask = async (question: string): Promise<void> => (options.yes ? undefined : confirm(question, "--yes"));
    const operands = given.slice(0, -2) as A;
    await work({ client, out: new Output(options.json ?? false), confirm: ask }, options, ...operands).catch((error: unknown) => {
      throw access.socketPath === undefined ? error : withAdvice(error, access.socketPath);
    });
  };
}

/** The gateway at the given address, else the local one. If there is no key for it, uses the one stored by `login`. */
async function accessOf({ url, keyFile }: AdminOptions): Promise<Pick<ClientOptions, "apiKey" | "baseUrl" | "socketPath">> {
  const environment = clientEnvironment();
  const baseUrl = urlOf(url || environment.url);
  try {
    const apiKey = keyFile === undefined ? (environment.apiKey ?? (await ownKey())) : await readKey(keyFile);
    return baseUrl === undefined ? { socketPath: operatorSocket(), apiKey } : { baseUrl, apiKey };
  } catch (error) {
    const stored = keyFile === undefined && !environment.apiKey && error instanceof CliError ? await readStored() : undefined;
    if (!stored || (baseUrl !== undefined && !isSameGateway(stored.url, baseUrl))) throw error;
    return { baseUrl: stored.url, apiKey: stored.api_key };
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no gateway has been started there",
  ECONNREFUSED: "the gateway is not running",
  EACCES: "only root and the user who runs npm start may use it",
};

function withAdvice(error: unknown, socketPath: string): unknown {
  if (!(error instanceof APIConnectionError)) return error;
  const reason = reasons[(error.cause as NodeJS.ErrnoException | undefined)?.code ?? ""];
  const advice = "SANDGATE_DATA_DIR selects a local gateway, SANDGATE_URL or --url one elsewhere";
  return reason ? new CliError(`no answer from ${socketPath}: ${reason}. ${advice}`) : error;
}

/** Makes the same call for several ids. @param done what has happened to each, such as "revoked" */
export async function forEachId({ out }: Task, ids: readonly string[], act: (id: string) => Promise<unknown>, done: string): Promise<void> {
  const answers: unknown[] = [];
  try {
    await forEach([...new Set(ids)], async (id) => {
      answers.push(await act(id));
      if (!out.isJson) out.text(`${id} is ${done}.`);
    });
  } finally {
    if (out.isJson && answers.length > 0) out.show(ids.length === 1 ? answers[0] : { data: answers }, () => {});
  }
}

/** The id of an account given by id or e-mail address. @throws {CliError} if there is none */
export async function accountId({ client }: Task, name: string): Promise<string> {
  if (name.startsWith("acct_")) return name;
  const accounts = await client.admin.accounts.list({ email: name }).all();
  const found = accounts.find(({ email }) => email?.toLowerCase() === name.toLowerCase());
  if (!found) throw new CliError(`no account has the e-mail address ${name}`);
  return found.id;
}
