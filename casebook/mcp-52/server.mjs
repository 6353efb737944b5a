// Starts Dokploy's server as it is installed, with a preset of tools.
if (process.argv[2] !== "all") process.env.DOKPLOY_TOOL_PRESET = process.argv[2];
process.env.DOKPLOY_URL = "http://127.0.0.1:9/api";
process.env.DOKPLOY_API_KEY = "none";
process.argv.length = 2;
await import("@dokploy/mcp/build/index.js");
