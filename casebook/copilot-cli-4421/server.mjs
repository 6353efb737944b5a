// Starts Azure DevOps' server as hosts are told to: by npx.
import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const command = ["-y", "@azure-devops/mcp", "contoso", "-d", "core", "--authentication", "env"];
const options = { stdio: "inherit", cwd: dirname(fileURLToPath(import.meta.url)) };
const child = spawn(process.argv[2], command, options);
child.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => child.kill(signal));
