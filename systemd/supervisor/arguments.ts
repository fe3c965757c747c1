/** The command line of `npm start -- …`. */
import { parseArgs } from "node:util";
import { describeSettings } from "../../shared/config.ts";
import { alignColumns } from "../../shared/util/columns.ts";
import { messageOf, StartFailure } from "../base/failure.ts";

/** What the command line asks for. */
export type Request = "start" | "setup" | "help";

/** @throws {StartFailure} on an option that does not exist. */
export function parseRequest(args: readonly string[]): Request {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { help: { type: "boolean", short: "h" }, "setup-only": { type: "boolean" } },
    });
    if (values.help) return "help";
    return values["setup-only"] ? "setup" : "start";
  } catch (error) {
    throw new StartFailure(`${messageOf(error)}\nnpm start -- --help lists the options`);
  }
}

/** The text of `--help`, which lists every setting. */
export function helpText(): string {
  const settings = describeSettings().flatMap(({ name, takes, fallback, about }) => [
    [`  ${name}`, about],
    ["", `${takes}${fallback === "" ? "" : `; default: ${fallback}`}`],
  ]);
  return [
    "Usage: npm start [-- OPTIONS]",
    "",
    "Prepares this machine, then runs NATS, the worker and the gateway until Ctrl-C.",
    "",
    "  --setup-only  prepare the machine (packages, user, default image) and exit",
    "  -h, --help    show this text",
    "",
    "Settings are environment variables, or lines NAME=value in sandgate.env in the data directory:",
    "",
    ...alignColumns(settings),
  ].join("\n");
}
