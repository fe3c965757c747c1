import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { ConfigError, describeSettings, isSetting, loadConfig, settings } from "../../../shared/config.ts";

const home = { HOME: "/home/somebody" };
const refusal = (environment: Record<string, string>): string => {
  try {
    loadConfig({ ...home, ...environment });
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  return assert.fail(`accepted: ${JSON.stringify(environment)}`);
};

test("every setting has a default that it would itself accept", () => {
  const config = loadConfig(home);
  assert.equal(config.port, 8080);
  assert.equal(config.stopSandboxes, false);
  assert.deepEqual(config.corsOrigins, []);
  assert.equal(config.storageDir, `${config.dataDir}/containers`);
  for (const setting of Object.values(settings)) {
    const value = typeof setting.fallback === "function" ? setting.fallback(home) : setting.fallback;
    const text = String(value);
    if (text !== "") assert.deepEqual(setting.parse(text), value, setting.name);
  }
});

test("an empty value means the default", () => {
  assert.equal(loadConfig({ ...home, SANDGATE_PORT: "" }).port, 8080);
});

test("values are taken, spaces around them are not", () => {
  const config = loadConfig({
    ...home,
    SANDGATE_PORT: " 9000 ",
    SANDGATE_STOP_SANDBOXES: "TRUE",
    SANDGATE_CORS_ORIGINS: "https://a.example, https://b.example,",
    SANDGATE_LOG_LEVEL: "debug",
  });
  assert.deepEqual([config.port, config.stopSandboxes, config.logLevel], [9000, true, "debug"]);
  assert.deepEqual(config.corsOrigins, ["https://a.example", "https://b.example"]);
});

test("a bad value is refused with the setting's name and what it takes", () => {
  for (const value of ["-1", "65536", "1.5", "0x50", "eighty", "1e3"]) {
    assert.equal(refusal({ SANDGATE_PORT: value }), "SANDGATE_PORT must be a whole number from 0 to 65535");
  }
  assert.equal(refusal({ SANDGATE_IMAGE_PULL: "yes" }), "SANDGATE_IMAGE_PULL must be true or false");
  assert.match(refusal({ SANDGATE_LOG_LEVEL: "loud" }), /^SANDGATE_LOG_LEVEL must be trace, debug/);
});

test("an unknown setting is refused by name, other variables are none of our business", () => {
  assert.match(refusal({ SANDGATE_PROT: "80" }), /SANDGATE_PROT is not a setting/);
  assert.ok(loadConfig({ ...home, PORT: "80", SANDGATEPORT: "80" }));
});

test("what clients of the API have in their shells is no setting and no mistake", () => {
  assert.ok(loadConfig({ ...home, SANDGATE_URL: "http://127.0.0.1:8080", SANDGATE_API_KEY: "sg_x" }));
});

test("settings of OpenTelemetry have the names that it gives them", () => {
  const config = loadConfig({
    ...home,
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20YTpi",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_SDK_DISABLED: "not ours",
  });
  assert.deepEqual([config.otlpEndpoint, config.otelTracesSampler, config.otelTracesSamplerArg], ["http://127.0.0.1:4318", "parentbased_traceidratio", 0.25]);
  assert.equal(loadConfig(home).otlpEndpoint, "");
  for (const url of ["127.0.0.1:4318", "ftp://a", "http://user:word@a"])
    assert.match(refusal({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), /must be an http or https URL/);
  for (const share of ["2", "-1", "half", "1.5", "."]) assert.match(refusal({ OTEL_TRACES_SAMPLER_ARG: share }), /must be a number from 0 to 1/);
  assert.match(refusal({ OTEL_TRACES_SAMPLER: "sometimes" }), /must be always_on, /);
  for (const headers of ["a b=1", "a=1%0a", "a=%E2%82%AC"]) assert.match(refusal({ OTEL_EXPORTER_OTLP_HEADERS: headers }), /must be a comma-separated list/);
  assert.match(refusal({ OTEL_RESOURCE_ATTRIBUTES: "region" }), /must be a comma-separated list/);
  assert.deepEqual(["OTEL_EXPORTER_OTLP_HEADERS_FILE", "OTEL_SDK_DISABLED", "SANDGATE_X", "PATH"].map(isSetting), [true, false, true, false]);
});

test("the settings of a process cannot be changed", () => {
  const config = loadConfig(home);
  assert.ok(Object.isFrozen(config));
  assert.throws(() => Object.assign(config, { port: 1 }), TypeError);
});

test("every setting is described once, under a name of its own", () => {
  const described = describeSettings(home);
  assert.equal(new Set(described.map(({ name }) => name)).size, Object.keys(settings).length);
  for (const { name, takes, about } of described) assert.ok(/^(SANDGATE|OTEL)_[A-Z_]+$/.test(name) && takes && about, name);
});

test("a secret may be given as the path of a file that holds it, other settings may not", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "sandgate-config-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "key");
  writeFileSync(file, "sg_secret\n");
  assert.equal(loadConfig({ ...home, SANDGATE_BOOTSTRAP_API_KEY_FILE: file }).bootstrapApiKey, "sg_secret");
  const credentials = { CREDENTIALS_DIRECTORY: dirname(file), SANDGATE_BOOTSTRAP_API_KEY_FILE: basename(file) };
  assert.equal(loadConfig({ ...home, ...credentials }).bootstrapApiKey, "sg_secret", "a credential of a service, by its name");
  assert.match(refusal({ SANDGATE_BOOTSTRAP_API_KEY_FILE: file, SANDGATE_BOOTSTRAP_API_KEY: "sg_other" }), /are both set/);
  assert.match(refusal({ SANDGATE_BOOTSTRAP_API_KEY_FILE: `${file}.not-there` }), /SANDGATE_BOOTSTRAP_API_KEY_FILE cannot be read/);
  assert.match(refusal({ SANDGATE_PORT_FILE: file }), /SANDGATE_PORT_FILE is not a setting/);
});
