/** The terminal emulator. */
export { FitAddon } from "@xterm/addon-fit";
export { type ITheme, Terminal } from "@xterm/xterm";
