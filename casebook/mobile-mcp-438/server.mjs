// Starts mobile-mcp as it is installed, with a mobilecli that takes so many seconds to list the devices.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "mobilecli-"));
const mobilecli = join(folder, "mobilecli");
writeFileSync(
  mobilecli,
  `#!/bin/sh
if [ "$1" = --version ]; then echo "mobilecli version 1.0.9"; exit; fi
sleep ${process.argv[2]}
echo '{"status":"ok","data":{"devices":[]}}'
`,
);
chmodSync(mobilecli, 0o755);
process.on("exit", () => rmSync(folder, { recursive: true }));
process.env.MOBILECLI_PATH = mobilecli;
process.argv.length = 2;
await import("@mobilenext/mobile-mcp/lib/index.js");
