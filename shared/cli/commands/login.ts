/** `login` and `logout`. */

import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { clientEnvironment, urlDefault } from "../../client/client.ts";
import { Sandgate } from "../../client/index.ts";
import { ask } from "../confirm.ts";
import { UsageError } from "../failures.ts";
import { Output, say } from "../output.ts";
import { forget, readStored, store } from "../settings.ts";
import { type CommonOptions, command } from "../task.ts";

const calmly = { maxRetries: 0, timeoutMs: 15_000 };

async function logIn({ url, json, keyStdin }: CommonOptions & { keyStdin?: true }): Promise<void> {
  if (!keyStdin && process.stdin.isTTY !== true)
    throw new UsageError("login asks for the key on a terminal; without one, pass it on standard input with --key-stdin");
  const known = url ?? clientEnvironment().url ?? (await readStored().catch(() => undefined))?.url ?? urlDefault;
  const baseUrl = url || keyStdin ? known : (await ask(`Gateway [${known}]: `)) || known;
  const apiKey = keyStdin ? (await text(process.stdin)).trim() : await ask("API key (Settings → API Keys on the gateway's web page): ", { hidden: true });
  const { account } = await new Sandgate({ baseUrl, apiKey, ...calmly }).account.get();
  const file = await store({ url: baseUrl, api_key: apiKey });
  new Output(json ?? false).show({ url: baseUrl, account, file }, () => say(`Logged in to ${baseUrl} as ${account.email ?? account.name}; stored in ${file}`));
}

async function logOut({ json }: CommonOptions): Promise<void> {
  const file = await forget();
  new Output(json ?? false).show({ file }, () => say(`The stored key has been removed (${file})`));
}

export function loginCommands(): Command[] {
  return [
    command("login", "check the address of a gateway and an API key, and store them").option("--key-stdin", "read the key from standard input").action(logIn),
    command("logout", "remove the stored key").action(logOut),
  ];
}
