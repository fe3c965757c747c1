/** The connection that the supervisor serves to a part. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { parsePinoLine } from "../../../../systemd/supervisor/log-line.ts";
import { Part, type PartSpec } from "../../../../systemd/supervisor/part.ts";
import { temporaryFolder } from "../../../helpers/folder.ts";
import { until } from "../../../helpers/until.ts";

/** Runs a shell script as a part until `isDone`. @returns what each of its runs has said over the connection */
async function runs(script: string, isDone: (said: readonly string[]) => boolean, serves = true): Promise<{ said: string[]; lines: string[] }> {
  using folder = temporaryFolder("part");
  const said: string[] = [];
  const lines: string[] = [];
  const serve: PartSpec["serve"] = (connection) => {
    connection.write("greeting\n");
    void text(connection).then((heard) => said.push(heard));
  };
  const spec = { name: "part", argv: ["sh", "-c", script], env: { PATH: "/usr/bin:/bin" }, cwd: "/", parse: parsePinoLine };
  const part = new Part(
    { ...spec, logFile: join(folder.path, "part.log"), notes: folder.path, ...(serves ? { serve } : {}) },
    { onLine: (_, { text: line }) => void lines.push(line), onDeath: () => {}, onRefusal: () => {} },
  );
  part.start();
  try {
    await until("the part has done it", () => isDone([...said, ...lines]));
  } finally {
    await part.stop(1_000);
  }
  return { said, lines };
}

test("each run of a part has a connection of its own, in both directions, which ends with it", async () => {
  const { said } = await runs("read -r greeting <&3; echo $greeting back >&3; exit 1", (all) => all.length >= 2);
  assert.deepEqual(said.slice(0, 2), ["greeting back\n", "greeting back\n"]);
});

test("a part that is not served has no such descriptor", async () => {
  const { lines } = await runs("[ -e /proc/self/fd/3 ] && echo open || echo closed; exec sleep 1000", (all) => all.length > 0, false);
  assert.deepEqual(lines, ["closed"]);
});
