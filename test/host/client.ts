/** Calls to the API with curl, from wherever a command can be run. */
import assert from "node:assert/strict";

type Run = (...argv: string[]) => Promise<string>;
type Answer<T> = T & { error?: { code: string; message: string } };

export class Client {
  readonly #run: Run;
  readonly #url: string;
  readonly #key: () => Promise<string>;

  constructor(run: Run, url: string, key: () => Promise<string>) {
    this.#run = run;
    this.#url = url;
    this.#key = key;
  }

  async call<T>(path: string, body?: object): Promise<Answer<T>> {
    return JSON.parse(await this.text(path, body)) as Answer<T>;
  }

  /** Deletes what is at a path. @throws {CommandError} when that is refused */
  async delete(path: string): Promise<void> {
    await this.#run("curl", "-sS", "--fail", "--max-time", "600", "-X", "DELETE", "-H", `x-api-key: ${(await this.#key()).trim()}`, `${this.#url}${path}`);
  }

  /** What a call answers, as it comes. */
  text(path: string, body?: object): Promise<string> {
    return this.#send(path, "application/json", body ? ["--data", JSON.stringify(body)] : []);
  }

  /** Writes a file in a sandbox. @throws {CommandError} when that is refused */
  async upload(id: string, path: string, content: string): Promise<void> {
    await this.#send(`/v1/sandboxes/${id}/upload?path=${path}`, "application/octet-stream", ["--fail", "--data-binary", content]);
  }

  async #send(path: string, type: string, options: readonly string[]): Promise<string> {
    const headers = ["-H", `x-api-key: ${(await this.#key()).trim()}`, "-H", `content-type: ${type}`];
    return this.#run("curl", "-sS", "--max-time", "600", ...headers, ...options, `${this.#url}${path}`);
  }

  /** The output of a command in a sandbox. @throws {Error} with the message of a refusal */
  async output(id: string, command: string): Promise<string> {
    const { stdout, error } = await this.call<{ stdout: string }>(`/v1/sandboxes/${id}/execute`, { command, timeout: 60 });
    if (error) throw new Error(error.message);
    return stdout;
  }

  /** @param why what to add to the message of a failure */
  async create(why: () => Promise<string> = async () => ""): Promise<string> {
    const { id, error } = await this.call<{ id: string }>("/v1/sandboxes/create", { image: "default", resources: { storage: 1 } });
    assert.equal(error, undefined, error && `${JSON.stringify(error)}\n${await why()}`);
    return id;
  }
}
