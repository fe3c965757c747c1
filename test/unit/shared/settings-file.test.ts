/** Settings in a file. */
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError, loadConfig } from "../../../shared/config.ts";
import { settingsLines, takeSettingsFile } from "../../../shared/settings-file.ts";
import { temporaryFolder } from "../../helpers/folder.ts";

/** The environment after a file was taken. */
function taken(text: string, given: Record<string, string> = {}, mode = 0o600): NodeJS.ProcessEnv {
  using folder = temporaryFolder("settings");
  const file = join(folder.path, "sandgate.env");
  writeFileSync(file, text);
  chmodSync(file, mode);
  const environment: NodeJS.ProcessEnv = { SANDGATE_DATA_DIR: folder.path, ...given };
  takeSettingsFile(environment);
  return environment;
}

const refused = (text: string, message: RegExp, mode?: number): void =>
  assert.throws(
    () => taken(text, {}, mode),
    (error: unknown) => error instanceof ConfigError && message.test(error.message),
  );

test("lines are read as systemd reads them", () => {
  const text = '# a comment\n\n; another\n A_B = 1\nSANDGATE_HOST="0.0.0.0" \n  SANDGATE_PORT=90\nSANDGATE_USER=\'it is\'\nSANDGATE_PUBLIC_URL="a \\"b\\""\n';
  assert.deepEqual(settingsLines(text), [
    { line: 4, value: "" },
    { line: 5, name: "SANDGATE_HOST", value: "0.0.0.0" },
    { line: 6, name: "SANDGATE_PORT", value: "90" },
    { line: 7, name: "SANDGATE_USER", value: "it is" },
    { line: 8, name: "SANDGATE_PUBLIC_URL", value: 'a "b"' },
  ]);
});

test("the file in the data directory is taken, and the environment takes precedence", () => {
  const config = loadConfig(taken("SANDGATE_PORT=9000\nSANDGATE_HOST=0.0.0.0\n", { SANDGATE_PORT: "9001" }));
  assert.deepEqual([config.port, config.host], [9001, "0.0.0.0"]);
});

test("a secret in the environment takes precedence in either of its forms", () => {
  const environment = taken("SANDGATE_BOOTSTRAP_API_KEY=sg_file\n", { SANDGATE_BOOTSTRAP_API_KEY_FILE: "/a/file" });
  assert.equal(environment.SANDGATE_BOOTSTRAP_API_KEY, undefined);
});

test("without a file nothing changes, unless one was named", () => {
  using folder = temporaryFolder("settings");
  const environment: NodeJS.ProcessEnv = { SANDGATE_DATA_DIR: folder.path };
  takeSettingsFile(environment);
  assert.deepEqual(Object.keys(environment), ["SANDGATE_DATA_DIR"]);
  assert.throws(() => takeSettingsFile({ SANDGATE_CONFIG: join(folder.path, "none") }), /names a file that is not there/);
  assert.throws(() => takeSettingsFile({ SANDGATE_CONFIG: "none" }), /must be the absolute path/);
});

test("a file that was named may say where the data is", () => {
  using folder = temporaryFolder("settings");
  const file = join(folder.path, "mine");
  writeFileSync(file, "SANDGATE_DATA_DIR=/srv/data\n", { mode: 0o600 });
  const environment: NodeJS.ProcessEnv = { SANDGATE_CONFIG: file };
  takeSettingsFile(environment);
  assert.equal(loadConfig(environment).dataDir, "/srv/data");
});

test("what is no setting is refused by its line, with the name that may have been meant", () => {
  refused("\nSANDGATE_PROT=9000\n", /sandgate\.env, line 2: SANDGATE_PROT is not a setting of Sandgate; did you mean SANDGATE_PORT\?/);
  refused("SANDGATE_QWERTZUIOP=1\n", /not a setting of Sandgate; npm start/);
  refused("SANDGATE_PORT=many\n", /line 1: SANDGATE_PORT must be a whole number/);
  refused("SANDGATE_PORT\n", /line 1 must be a setting/);
  refused("PATH=/tmp\n", /line 1 must be a setting/);
  refused("SANDGATE_PORT=1\nSANDGATE_PORT=2\n", /line 2: SANDGATE_PORT is set twice/);
  refused("SANDGATE_DATA_DIR=/srv\n", /cannot be set in this file/);
  refused("SANDGATE_CONFIG=/srv/x\n", /cannot be set in this file/);
  assert.throws(() => loadConfig({ SANDGATE_HOSTS: "x" }), /did you mean SANDGATE_HOST\?/);
});

test("a file that others can change, or with a secret that others can read, is refused", () => {
  refused("SANDGATE_PORT=9000\n", /can be changed by others/, 0o622);
  refused("SANDGATE_BOOTSTRAP_API_KEY=sg_1\n", /can be read by others: chmod 600/, 0o644);
  assert.equal(taken("SANDGATE_PORT=9000\n", {}, 0o644).SANDGATE_PORT, "9000");
});
